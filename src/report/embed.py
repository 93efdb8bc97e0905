"""Turn a text file into a C string constant: embed.py NAME INPUT OUTPUT."""
import sys

name, source, target = sys.argv[1:]
lines = open(source, encoding="utf-8").read().splitlines()
with open(target, "w", encoding="utf-8") as out:
    out.write(f"extern const char {name}[];\nconst char {name}[] =\n")
    for line in lines:
        text = line.replace("\\", "\\\\").replace('"', '\\"')
        out.write(f'    "{text}\\n"\n')
    out.write("    ;\n")
