/* cmd_evict.c - `millrace evict`: drop files from the page cache and prove it. */
#include "commands.h"

#include "cache_sweep.h"
#include "errtext.h"
#include "output.h"
#include "say.h"
#include "terminal.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>

/* What there is to say against an entry of the walk; 0: nothing. */
static int evict_entry(struct mr_cache_sweep *s, const FTSENT *e)
{
    int named = e->fts_level == FTS_ROOTLEVEL, bad = 0;
    switch (e->fts_info) {
    case FTS_F:
        return mr_cache_sweep_file(s, e->fts_path, 1);
    case FTS_NS:
    case FTS_DNR:
    case FTS_ERR:
        bad = -e->fts_errno;
        break;
    case FTS_SLNONE: /* below a folder, nothing that could be cached */
        bad = named ? -ENOENT : 0;
        break;
    case FTS_DEFAULT:
        bad = named ? -EINVAL : 0;
        break;
    }
    s->n_failed += bad != 0;
    return bad;
}

/* The file or every regular file below the folder; links are followed, as in a data set.
 * -ECANCELED when interrupted. */
static int sweep_path(struct mr_cache_sweep *s, char *path)
{
    char *roots[] = {path, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        return -errno;
    FTSENT *e;
    int r = 0;
    while (!r && (errno = 0, e = fts_read(walk))) {
        int bad = evict_entry(s, e);
        if (bad) {
            progress_clear();
            say_to(stderr, "millrace evict: %s: %s\n", e->fts_path,
                   bad == -EINVAL ? "neither a file nor a folder" : mr_errno_text(bad));
        }
        progress_show("evicting", s->files, 0);
        if (terminal_interrupted(NULL))
            r = -ECANCELED;
    }
    if (!r && errno)
        r = -errno;
    fts_close(walk);
    return r;
}

/* NULL: there was nothing to evict, and nothing to prove. */
static const char *verdict(const struct mr_cache_sweep *s)
{
    if (!s->files && !s->n_failed)
        return NULL;
    return s->n_failed || s->cached_after ? "incomplete" : s->n_unproven ? "unproven" : "data";
}

static struct mr_json *to_json(const struct mr_cache_sweep *s, const char *path, int partial)
{
    struct mr_json *o = mr_json_object();
    int known = !s->n_unknown && s->files;
    mr_json_set(o, "path", mr_json_string(path));
    mr_json_set(o, "files", mr_json_int((int64_t)s->files));
    mr_json_set(o, "bytes", mr_json_int((int64_t)s->bytes));
    mr_json_set(o, "cached_before",
                known ? mr_json_int((int64_t)s->cached_before) : mr_json_null());
    mr_json_set(o, "cached_after", known ? mr_json_int((int64_t)s->cached_after) : mr_json_null());
    mr_json_set(o, "unproven_files", mr_json_int((int64_t)s->n_unproven));
    mr_json_set(o, "failed_files", mr_json_int((int64_t)s->n_failed));
    mr_json_set(o, "cold", mr_json_string(verdict(s)));
    mr_json_set(o, "partial", mr_json_bool(partial));
    return o;
}

static void print(const struct mr_cache_sweep *s, const char *path, int partial)
{
    char a[32], b[32], c[32];
    if (!verdict(s)) {
        say("%s: no files%s\n", path, partial ? " (partial)" : "");
        return;
    }
    say("%s: %llu file%s, %s", path, (unsigned long long)s->files, plural(s->files),
        human_bytes((double)s->bytes, a, sizeof a));
    if (s->n_unknown)
        say("; what was cached cannot be known for %llu of them (other owner)",
            (unsigned long long)s->n_unknown);
    else
        say("; cached before %s, after %s", human_bytes((double)s->cached_before, b, sizeof b),
            human_bytes((double)s->cached_after, c, sizeof c));
    say("; cold: %s%s\n", verdict(s), partial ? " (partial)" : "");
}

int command_evict(const struct options *o)
{
    struct output out;
    if (output_open(o, &out))
        return 1;
    struct mr_json *results = mr_json_array();
    int status = 0;
    for (int i = 0; status != 130 && i < o->n_paths; i++) {
        struct mr_cache_sweep s = {0};
        int r = sweep_path(&s, o->paths[i]);
        progress_clear();
        if (r < 0 && r != -ECANCELED)
            say_to(stderr, "millrace evict: %s: %s\n", o->paths[i], mr_errno_text(r));
        if (!out.quiet)
            print(&s, o->paths[i], r != 0);
        mr_json_append(results, to_json(&s, o->paths[i], r != 0));
        if (r == -ECANCELED)
            status = 130;
        else if (r || s.n_failed || s.cached_after)
            status = 1;
    }
    return output_json(&out, o, o->paths[0], results) && !status ? 1 : status;
}
