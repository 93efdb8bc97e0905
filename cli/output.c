/* output.c - see output.h. */
#include "output.h"

#include "environment.h"
#include "errtext.h"
#include "new_file.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

void output_begin(void)
{
    /* Opened for the wrong direction, so that using it fails. */
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
            _exit(1);
    signal(SIGPIPE, SIG_IGN);
}

void output_for_a_reader(void)
{
    signal(SIGPIPE, SIG_DFL);
}

int output_end(int status)
{
    errno = 0;
    if (!ferror(stdout) && !fflush(stdout))
        return status;
    say_to(stderr, "millrace: standard output could not be written%s%s\n", errno ? ": " : "",
           errno ? mr_errno_text(errno) : "");
    return status ? status : 1;
}

int output_open(const struct options *o, struct output *out)
{
    *out = (struct output){o->json, o->json && !strcmp(o->json, "-")};
    int r = o->json && !out->quiet ? mr_new_file_check(o->json) : 0;
    if (r)
        say_to(stderr, "millrace: --json %s: %s\n", o->json, mr_errno_text(r));
    return r != 0;
}

static int write_whole(const char *path, const struct mr_json *root)
{
    struct mr_new_file f;
    int r = mr_new_file_begin(path, &f);
    if (r)
        return r;
    r = mr_json_write(root, f.fd);
    if (!r)
        return mr_new_file_commit(&f);
    mr_new_file_abort(&f);
    return r;
}

int output_json(struct output *out, const struct options *o, const char *storage,
                struct mr_json *results)
{
    const char *path = out->path;
    if (!path) {
        mr_json_free(results);
        return 0;
    }
    struct mr_json *root = mr_json_object();
    mr_json_set(root, "command", mr_json_string(command_table[o->command].name));
    mr_json_set(root, "version", mr_json_string(mr_version()));
    mr_json_set(root, "environment", mr_environment(storage));
    mr_json_set(root, "results", results);
    fflush(stdout); /* the file may be /dev/stdout */
    int r = out->quiet ? mr_json_write(root, STDOUT_FILENO) : write_whole(path, root);
    mr_json_free(root);
    out->path = NULL;
    if (r)
        say_to(stderr, "millrace: --json %s: %s\n", path, mr_errno_text(r));
    return r != 0;
}

FILE *output_stream(const char *option, const char *path)
{
    int fd = mr_new_file_stream(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (f)
        return f;
    say_to(stderr, "millrace: --%s %s: %s\n", option, path, mr_errno_text(fd < 0 ? fd : errno));
    if (fd >= 0)
        close(fd);
    return NULL;
}

const char *human_bytes(double bytes, char *buf, size_t cap)
{
    static const char *const unit[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    unsigned u = 0;
    while (bytes >= 999.5 && u < 5) {
        bytes /= 1000;
        u++;
    }
    snprintf(buf, cap, u && bytes < 99.95 ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return buf;
}
