/* tf_state_reader.h - TensorFlow's text file `checkpoint`, read back to see what was written.  The
 * library writes it for TensorFlow and never reads it. */
#ifndef MR_TEST_TF_STATE_READER_H
#define MR_TEST_TF_STATE_READER_H

#include <millrace/api.h>

#define MR_STATE_MAX_FILE  ((size_t)16 << 20)
#define MR_STATE_MAX_PATHS 65536

/* Names are relative to the file's folder and stay in it: what the file calls by an absolute path
 * is taken by its last component, because folders get moved and copied. */
struct mr_tf_state {
    char *latest; /* NULL: none */
    char **all;   /* oldest first */
    size_t n, cap;
    size_t n_refused; /* paths that would leave the folder, or name nothing */
};

/* Read it; `name` is for error texts.  *out is written on success only and then has to be
 * finished.  0, -EBADMSG, -ENOMEM. */
int mr_tf_state_parse(const char *name, const char *text, size_t len, struct mr_tf_state *out,
                      struct mr_error *err);
void mr_tf_state_fini(struct mr_tf_state *s);

#endif
