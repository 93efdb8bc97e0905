/* mapping.c - see mapping.h. */
#include "mapping.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int mapping_has(const void *address, const char *flag)
{
    char line[4096], wanted[16];
    int here = 0, has = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    snprintf(wanted, sizeof wanted, " %s ", flag);
    while (f && fgets(line, sizeof line, f)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            here = from <= (uintptr_t)address && (uintptr_t)address < to;
        else if (here && !strncmp(line, "VmFlags:", 8))
            has = strstr(line, wanted) != NULL;
    }
    if (f)
        fclose(f);
    return has;
}
