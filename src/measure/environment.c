/* environment.c - the record that goes with every result, so that two figures can be compared or
 * told apart: processor, memory, kernel, file system, mount options, block device and its queue. */
#include "environment.h"

#include "filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <millrace/api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* First line of a small file without its newline; NULL when there is none. */
static char *first_line(const char *path, char *buf, size_t cap)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    char *line = fgets(buf, (int)cap, f);
    fclose(f);
    if (line)
        line[strcspn(line, "\n")] = 0;
    return line;
}

/* The value after `key` and a colon in a file like /proc/cpuinfo. */
static char *value_of(const char *path, const char *key, char *buf, size_t cap)
{
    FILE *f = fopen(path, "re");
    char *value = NULL;
    if (!f)
        return NULL;
    size_t n = strlen(key);
    while (!value && fgets(buf, (int)cap, f)) {
        char *colon = strchr(buf, ':');
        if (!colon || strncmp(buf, key, n))
            continue;
        value = colon + 1 + strspn(colon + 1, " \t");
        value[strcspn(value, "\n")] = 0;
    }
    fclose(f);
    return value;
}

static uint64_t kilobytes_of(const char *path, const char *key)
{
    char line[256], *v = value_of(path, key, line, sizeof line);
    return v ? strtoull(v, NULL, 10) * 1024 : 0;
}

uint64_t mr_memory_total_bytes(void)
{
    return kilobytes_of("/proc/meminfo", "MemTotal");
}

uint64_t mr_peak_rss_bytes(void)
{
    return kilobytes_of("/proc/self/status", "VmHWM");
}

void mr_peak_rss_reset(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = write(fd, "5", 1);
    (void)n; /* without it the peak is that of the whole process */
    close(fd);
}

/* A queue attribute of the whole disk that a (partition's) device number belongs to. */
static void set_queue(struct mr_json *o, const char *key, const struct mr_filesystem *fs,
                      const char *attribute)
{
    char path[PATH_MAX], line[256];
    for (int parent = 0; parent < 2; parent++) {
        snprintf(path, sizeof path, "/sys/dev/block/%u:%u/%squeue/%s", fs->dev_major, fs->dev_minor,
                 parent ? "../" : "", attribute);
        char *v = first_line(path, line, sizeof line);
        if (!v)
            continue;
        for (size_t n = strlen(v); n && strchr(" \t", v[n - 1]); n--)
            v[n - 1] = 0; /* "bfq " */
        char *end;
        long long number = strtoll(v, &end, 10);
        mr_json_set(o, key, *end ? mr_json_string(v) : mr_json_int(number));
        return;
    }
}

static void set_device(struct mr_json *o, const struct mr_filesystem *fs)
{
    char path[64], target[PATH_MAX];
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", fs->dev_major, fs->dev_minor);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return;
    target[n] = 0;
    char *name = strrchr(target, '/');
    mr_json_set(o, "device", mr_json_string(name ? name + 1 : target));
    set_queue(o, "scheduler", fs, "scheduler");
    set_queue(o, "read_ahead_kb", fs, "read_ahead_kb");
    set_queue(o, "max_request_kb", fs, "max_sectors_kb");
    set_queue(o, "nr_requests", fs, "nr_requests");
    set_queue(o, "logical_block_bytes", fs, "logical_block_size");
    set_queue(o, "physical_block_bytes", fs, "physical_block_size");
    set_queue(o, "write_cache", fs, "write_cache");
    set_queue(o, "rotational", fs, "rotational");
}

/* /proc/self/mounts writes blanks and the like as \\040; undo that in place. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++)
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
            *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 3;
        } else {
            *to++ = *s;
        }
    *to = 0;
}

/* The mount below `path`: the longest mount point that is a prefix of it. */
static void set_mount(struct mr_json *o, const char *path)
{
    char real[PATH_MAX], line[8192], best_type[64] = "", best_options[1024] = "";
    char best_source[1024] = "", source[1024], point[4096], type[64], options[1024];
    size_t best = 0;
    FILE *f = fopen("/proc/self/mounts", "re");
    if (!f)
        return;
    if (!realpath(path, real)) {
        fclose(f);
        return;
    }
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%1023s %4095s %63s %1023s", source, point, type, options) != 4)
            continue;
        unescape(point);
        size_t n = strlen(point);
        int below =
            !strcmp(point, "/") || (!strncmp(real, point, n) && (real[n] == '/' || !real[n]));
        if (!below || n < best)
            continue;
        best = n;
        memcpy(best_source, source, sizeof source);
        memcpy(best_type, type, sizeof type);
        memcpy(best_options, options, sizeof options);
    }
    fclose(f);
    mr_json_set(o, "file_system", mr_json_string(best_type));
    mr_json_set(o, "mount_options", mr_json_string(best_options));
    unescape(best_source);
    mr_json_set(o, "source", mr_json_string(best_source));
}

struct mr_json *mr_environment_storage(const char *path)
{
    struct mr_json *o = mr_json_object();
    struct mr_filesystem fs;
    mr_json_set(o, "path", mr_json_string(path));
    set_mount(o, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        if (!mr_filesystem_of(fd, &fs) && fs.kind == MR_FS_BLOCK)
            set_device(o, &fs);
        close(fd);
    }
    return o;
}

const char *mr_environment_now(char *buf, size_t cap)
{
    time_t t = time(NULL);
    struct tm tm;
    if (!strftime(buf, cap, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm)))
        buf[0] = 0;
    return buf;
}

struct mr_json *mr_environment(const char *path)
{
    struct mr_json *o = mr_json_object();
    char line[512], now[32];
    struct utsname uts;
    struct rlimit files;

    mr_json_set(o, "time", mr_json_string(mr_environment_now(now, sizeof now)));
    if (!uname(&uts)) {
        mr_json_set(o, "host", mr_json_string(uts.nodename));
        mr_json_set(o, "kernel", mr_json_string(uts.release));
        mr_json_set(o, "architecture", mr_json_string(uts.machine));
    }
    mr_json_set(o, "cpu",
                mr_json_string(value_of("/proc/cpuinfo", "model name", line, sizeof line)));
    mr_json_set(o, "cpus", mr_json_int(sysconf(_SC_NPROCESSORS_ONLN)));
    mr_json_set(o, "memory_bytes", mr_json_int((int64_t)mr_memory_total_bytes()));
    if (!getrlimit(RLIMIT_NOFILE, &files))
        mr_json_set(o, "open_files_limit", mr_json_int((int64_t)files.rlim_cur));
    mr_json_set(o, "root", mr_json_bool(geteuid() == 0));
    if (path)
        mr_json_set(o, "storage", mr_environment_storage(path));
    return o;
}
