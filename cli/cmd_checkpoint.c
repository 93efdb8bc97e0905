/* cmd_checkpoint.c - `millrace checkpoint`: list, verify, convert and restore checkpoints. */
#include "commands.h"

#include "ckpt_file.h"
#include "ckpt_folder.h"
#include "ckpt_format.h"
#include "convert.h"
#include "errtext.h"
#include "output.h"
#include "say.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Of a checkpoint that has none. */
#define NO_CHECKSUMS "readable, no checksums to verify"

/* What all actions share. */
struct run {
    const struct options *o;
    struct output out;
    struct mr_json *results;
    const char *path; /* a folder, a prefix, or a file */
    int is_folder;
    struct mr_ckpt_folder folder; /* of both tiers; only when path is a folder */
};

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_show(ctx, done, total);
}

static struct mr_checkpoint_watch watch_for(const char *what)
{
    return (struct mr_checkpoint_watch){.progress = show_progress,
                                        .should_stop = terminal_interrupted,
                                        .ctx = (void *)(uintptr_t)what};
}

static void on_waiting(void *ctx, const char *text)
{
    (void)ctx;
    say_to(stderr, "note: %s\n", text);
}

/* 1, or 130 when the user ended it. */
static int complain(const char *action, int code, const struct mr_error *err)
{
    progress_clear();
    say_to(stderr, "millrace checkpoint %s: %s\n", action, err->text);
    return code == -ECANCELED ? 130 : 1;
}

static const char *format_name(enum mr_checkpoint_format f)
{
    return mr_ckpt_format_row(f)->name;
}

static int below(const char *path, const char *dir)
{
    size_t n = dir ? strlen(dir) : 0;
    return n && !strncmp(path, dir, n) && path[n] == '/';
}

static const char *tier_of(const struct run *r, const char *path)
{
    return below(path, r->o->drain) ? "slow" : "fast";
}

static const char *human_age(double s, char *buf, size_t cap)
{
    if (s < 120)
        snprintf(buf, cap, "%.0f s", s < 0 ? 0 : s);
    else if (s < 7200)
        snprintf(buf, cap, "%.0f min", s / 60);
    else if (s < 172800)
        snprintf(buf, cap, "%.0f h", s / 3600);
    else
        snprintf(buf, cap, "%.0f days", s / 86400);
    return buf;
}

static void shape_text(const struct mr_tensor *t, char *buf, size_t cap)
{
    size_t n = (size_t)snprintf(buf, cap, "[");
    for (unsigned d = 0; d < t->n_dims && n < cap; d++)
        n += (size_t)snprintf(buf + n, cap - n, "%s%llu", d ? ", " : "",
                              (unsigned long long)t->dims[d]);
    if (n < cap)
        snprintf(buf + n, cap - n, "]");
}

static struct mr_json *tensor_json(const struct mr_tensor *t)
{
    struct mr_json *o = mr_json_object(), *shape = mr_json_array();
    char crc[16];
    for (unsigned d = 0; d < t->n_dims; d++)
        mr_json_append(shape, mr_json_int((int64_t)t->dims[d]));
    snprintf(crc, sizeof crc, "%08x", t->crc);
    mr_json_set(o, "name", mr_json_string(t->name));
    mr_json_set(o, "dtype", mr_json_string(mr_dtype_name(t->dtype)));
    mr_json_set(o, "shape", shape);
    mr_json_set(o, "bytes", mr_json_int((int64_t)t->bytes));
    mr_json_set(o, "crc32c", mr_json_string(t->has_crc ? crc : NULL));
    return o;
}

/* `ls` of one checkpoint: its tensors. */
static int list_tensors(struct run *r)
{
    struct mr_ckpt_file *c = NULL;
    struct mr_error err = {0};
    int e = mr_ckpt_file_open(r->path, &c, &err);
    if (e)
        return complain("ls", e, &err);
    const struct mr_tensor_table *t = mr_ckpt_file_tensors(c);
    struct mr_json *tensors = mr_json_array(), *o = mr_json_object();
    char shape[256], size[32];
    for (size_t i = 0; i < t->n; i++) {
        shape_text(&t->tensors[i], shape, sizeof shape);
        if (!r->out.quiet)
            say("%-11s %-22s %10s  %s\n", mr_dtype_name(t->tensors[i].dtype), shape,
                human_bytes((double)t->tensors[i].bytes, size, sizeof size), t->tensors[i].name);
        mr_json_append(tensors, tensor_json(&t->tensors[i]));
    }
    if (!r->out.quiet)
        say("%zu tensor%s, %s in all, %s%s\n", t->n, plural(t->n),
            human_bytes((double)mr_ckpt_file_bytes(c), size, sizeof size),
            format_name(mr_ckpt_file_format(c)),
            mr_ckpt_file_has_checksums(c) ? "" : "; without checksums");
    mr_json_set(o, "path", mr_json_string(r->path));
    mr_json_set(o, "format", mr_json_string(format_name(mr_ckpt_file_format(c))));
    mr_json_set(o, "bytes", mr_json_int((int64_t)mr_ckpt_file_bytes(c)));
    mr_json_set(o, "tensors", tensors);
    mr_json_append(r->results, o);
    mr_ckpt_file_close(c);
    return 0;
}

/* One line of a folder's list.  State: can it be opened, are its files whole? */
static void list_one(struct run *r, const struct mr_ckpt_found *f)
{
    struct mr_ckpt_file *c = NULL;
    struct mr_error err = {0};
    struct mr_json *o = mr_json_object();
    double age = difftime(time(NULL), (time_t)f->mtime_s);
    char size[32], old[32], step[32] = "-";
    int bad = mr_ckpt_file_open(f->path, &c, &err);
    mr_ckpt_file_close(c);
    if (f->step >= 0)
        snprintf(step, sizeof step, "%lld", (long long)f->step);
    if (!r->out.quiet)
        say("%10s %10s  %-11s %-4s  %-8s %8s  %s%s%s\n", step,
            human_bytes((double)f->bytes, size, sizeof size), format_name(f->format),
            tier_of(r, f->path), bad ? "broken" : "complete", human_age(age, old, sizeof old),
            f->path, bad ? ": " : "", bad ? err.text : "");
    mr_json_set(o, "path", mr_json_string(f->path));
    mr_json_set(o, "step", f->step >= 0 ? mr_json_int(f->step) : mr_json_null());
    mr_json_set(o, "bytes", mr_json_int((int64_t)f->bytes));
    mr_json_set(o, "format", mr_json_string(format_name(f->format)));
    mr_json_set(o, "tier", mr_json_string(tier_of(r, f->path)));
    mr_json_set(o, "state", mr_json_string(bad ? "broken" : "complete"));
    mr_json_set(o, "reason", mr_json_string(bad ? err.text : NULL));
    mr_json_set(o, "age_s", mr_json_real(age));
    mr_json_append(r->results, o);
}

static int run_ls(struct run *r)
{
    if (!r->is_folder)
        return list_tensors(r);
    if (!r->out.quiet && r->folder.n)
        say("%10s %10s  %-11s %-4s  %-8s %8s  %s\n", "step", "size", "format", "tier", "state",
            "age", "path");
    for (size_t i = r->folder.n; i-- > 0;)
        list_one(r, &r->folder.found[i]);
    if (!r->out.quiet && !r->folder.n)
        say("%s: no checkpoints\n", r->path);
    return 0;
}

/* Verify one: 0, 1 or 130. */
static int verify_one(struct run *r, const char *path)
{
    struct mr_ckpt_file *c = NULL;
    struct mr_checkpoint_verdict v = {0};
    struct mr_checkpoint_watch w = watch_for("verifying");
    struct mr_error err = {0};
    char size[32];
    int e = mr_ckpt_file_open(path, &c, &err);
    if (!e)
        e = mr_ckpt_file_verify(c, &w, &v, &err);
    progress_clear();
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "path", mr_json_string(path));
    mr_json_set(o, "ok", mr_json_bool(!e));
    mr_json_set(o, "tensors", mr_json_int((int64_t)v.n_tensors));
    mr_json_set(o, "bytes", mr_json_int((int64_t)v.bytes));
    mr_json_set(o, "unchecked", mr_json_int((int64_t)v.n_unchecked));
    mr_json_set(o, "bad", mr_json_string(v.where[0] ? v.where : NULL));
    mr_json_set(o, "error", mr_json_string(e ? err.text : NULL));
    mr_json_append(r->results, o);
    mr_ckpt_file_close(c);
    if (e)
        return complain("verify", e, &err);
    if (!r->out.quiet)
        say("%s: %zu tensor%s, %s, %s\n", path, v.n_tensors, plural(v.n_tensors),
            human_bytes((double)v.bytes, size, sizeof size),
            v.n_unchecked ? NO_CHECKSUMS : "every byte as it was written");
    return 0;
}

static int run_verify(struct run *r)
{
    int status = 0;
    if (!r->is_folder)
        return verify_one(r, r->path);
    for (size_t i = r->folder.n; status != 130 && i-- > 0;) {
        int s = verify_one(r, r->folder.found[i].path);
        status = s ? s : status;
    }
    if (!r->folder.n) {
        say_to(stderr, "millrace checkpoint verify: %s: no checkpoints\n", r->path);
        return 1;
    }
    return status;
}

/* unchecked: tensors of `from` that had no checksum. */
static void report_made(struct run *r, const char *from, const char *to, const char *what,
                        size_t unchecked)
{
    struct mr_json *o = mr_json_object();
    mr_json_set(o, "from", mr_json_string(from));
    mr_json_set(o, "to", mr_json_string(to));
    mr_json_set(o, "unchecked", mr_json_int((int64_t)unchecked));
    mr_json_append(r->results, o);
    if (!r->out.quiet)
        say("%s%s %s %s\n", from, unchecked ? " (" NO_CHECKSUMS ")" : "", what, to);
}

static int run_convert(struct run *r)
{
    struct mr_checkpoint_watch w = watch_for("converting");
    struct mr_convert_opts opts = {.format = (enum mr_checkpoint_format)r->o->format,
                                   .packed = r->o->packed,
                                   .watch = &w,
                                   .waiting = on_waiting};
    struct mr_ckpt_file *c = NULL;
    struct mr_error err = {0};
    char to[MR_CKPT_MAX_PATH];
    const char *from = r->path;
    if (r->is_folder && !r->folder.n) {
        say_to(stderr, "millrace checkpoint convert: %s: no checkpoints\n", r->path);
        return 1;
    }
    if (r->is_folder)
        from = r->folder.found[r->folder.n - 1].path;
    int e = mr_ckpt_file_open(from, &c, &err);
    if (!e)
        e = mr_ckpt_convert(c, r->o->to, &opts, to, &err);
    size_t unchecked = e || mr_ckpt_file_has_checksums(c) ? 0 : mr_ckpt_file_tensors(c)->n;
    mr_ckpt_file_close(c);
    progress_clear();
    if (e)
        return complain("convert", e, &err);
    report_made(r, from, to, "is now also", unchecked);
    return 0;
}

/* Is it good?  If so, copy it: 0.  Otherwise why not. */
static int restore_one(struct run *r, const char *path, char to[MR_CKPT_MAX_PATH], int *is_good,
                       size_t *unchecked, struct mr_error *err)
{
    struct mr_checkpoint_watch verifying = watch_for("verifying"), copying = watch_for("copying");
    struct mr_checkpoint_verdict v = {0};
    struct mr_ckpt_file *c = NULL;
    int e = mr_ckpt_file_open(path, &c, err);
    if (!e)
        e = mr_ckpt_file_verify(c, &verifying, &v, err);
    *is_good = !e;
    *unchecked = v.n_unchecked;
    if (!e)
        e = mr_ckpt_copy(c, r->o->to,
                         &(struct mr_convert_opts){.watch = &copying, .waiting = on_waiting}, to,
                         err);
    mr_ckpt_file_close(c);
    progress_clear();
    return e;
}

static int run_restore(struct run *r)
{
    char to[MR_CKPT_MAX_PATH];
    struct mr_ckpt_found one = {.path = (char *)(uintptr_t)r->path};
    const struct mr_ckpt_found *found = r->is_folder ? r->folder.found : &one;
    for (size_t i = r->is_folder ? r->folder.n : 1; i-- > 0;) {
        struct mr_error err = {0};
        size_t unchecked;
        int is_good, e = restore_one(r, found[i].path, to, &is_good, &unchecked, &err);
        if (!e) {
            report_made(r, found[i].path, to,
                        unchecked ? "restored to" : "verified and restored to", unchecked);
            return 0;
        }
        if (is_good || e == -ECANCELED)
            return complain("restore", e, &err);
        say_to(stderr, "millrace checkpoint restore: passed over: %s\n", err.text);
        struct mr_json *o = mr_json_object();
        mr_json_set(o, "passed_over", mr_json_string(found[i].path));
        mr_json_set(o, "reason", mr_json_string(err.text));
        mr_json_append(r->results, o);
    }
    say_to(stderr, "millrace checkpoint restore: %s: no checkpoint that verifies\n", r->path);
    return 1;
}

static const struct action {
    const char *name;
    int (*run)(struct run *r);
    int needs_to;
} actions[] = {
    {"ls", run_ls, 0},
    {"verify", run_verify, 0},
    {"convert", run_convert, 1},
    {"restore", run_restore, 1},
};
#define N_ACTIONS (sizeof actions / sizeof *actions)

/* Add a folder's checkpoints.  With --drain a missing folder has none, and the user is told. */
static int add_folder(struct run *r, const char *dir, struct mr_error *err)
{
    int e = mr_ckpt_folder_scan(&r->folder, AT_FDCWD, dir, err);
    if (e != -ENOENT || !r->o->drain)
        return e;
    say_to(stderr, "millrace checkpoint: %s: there is no such folder\n", dir);
    *err = (struct mr_error){0};
    return 0;
}

/* What PATH is, and what is in the folders: with --drain a folder, even if it is gone. */
static int look(struct run *r, const char *action)
{
    struct stat st;
    struct mr_error err = {0};
    int there = !stat(r->path, &st);
    r->is_folder = there ? S_ISDIR(st.st_mode) : r->o->drain && errno == ENOENT;
    int e = r->is_folder ? add_folder(r, r->path, &err) : 0;
    if (!e && r->is_folder && r->o->drain)
        e = add_folder(r, r->o->drain, &err);
    return e ? complain(action, e, &err) : 0;
}

int command_checkpoint(const struct options *o)
{
    struct run r = {.o = o, .path = o->paths[1]};
    const struct action *a = actions;
    while (a < actions + N_ACTIONS && strcmp(a->name, o->paths[0]))
        a++;
    if (a == actions + N_ACTIONS) {
        say_to(stderr,
               "millrace checkpoint: '%s' is none of ls, verify, convert, restore\n"
               "Try 'millrace checkpoint --help'.\n",
               o->paths[0]);
        return 2;
    }
    if (a->needs_to && !o->to) {
        say_to(stderr, "millrace checkpoint %s needs --to DIR\n", a->name);
        return 2;
    }
    if (output_open(o, &r.out))
        return 1;
    r.results = mr_json_array();
    int status = look(&r, a->name);
    if (!status)
        status = a->run(&r);
    mr_ckpt_folder_fini(&r.folder);
    if (status && !mr_json_len(r.results)) { /* nothing was found out: an earlier file stays */
        mr_json_free(r.results);
        return status;
    }
    return output_json(&r.out, o, r.path, r.results) && !status ? 1 : status;
}
