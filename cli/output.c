/* output.c - see output.h. */
#include "output.h"

#include "environment.h"
#include "errtext.h"

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
    fprintf(stderr, "millrace: standard output could not be written%s%s\n", errno ? ": " : "",
            errno ? mr_errno_text(errno) : "");
    return status ? status : 1;
}

int output_open(const struct options *o, struct output *out)
{
    *out = (struct output){o->json, -1, 0};
    if (!o->json)
        return 0;
    out->quiet = !strcmp(o->json, "-");
    out->fd =
        out->quiet ? STDOUT_FILENO : open(o->json, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out->fd >= 0)
        return 0;
    fprintf(stderr, "millrace: --json %s: %s\n", o->json, mr_errno_text(errno));
    return 1;
}

int output_json(struct output *out, const struct options *o, const char *storage,
                struct mr_json *results)
{
    if (out->fd < 0) {
        mr_json_free(results);
        return 0;
    }
    struct mr_json *root = mr_json_object();
    mr_json_set(root, "command", mr_json_string(command_table[o->command].name));
    mr_json_set(root, "version", mr_json_string(mr_version()));
    mr_json_set(root, "environment", mr_environment(storage));
    mr_json_set(root, "results", results);
    int r = mr_json_write(root, out->fd);
    mr_json_free(root);
    if (!out->quiet && close(out->fd) && !r)
        r = -errno;
    out->fd = -1;
    if (!r)
        return 0;
    fprintf(stderr, "millrace: --json %s: %s\n", out->path, mr_errno_text(r));
    return 1;
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
