/* ckpt_folder.h - the checkpoints of a folder, found by looking, never by a pointer file. */
#ifndef MR_CKPT_FOLDER_H
#define MR_CKPT_FOLDER_H

#include "ckpt_file.h"

struct mr_ckpt_found {
    char *path; /* as users name it, with the folder: PREFIX-STEP or FILE.safetensors */
    enum mr_checkpoint_format format;
    size_t stem_len;     /* of `path`: without an ending */
    int64_t step;        /* the number behind the last '-' of the name; -1: none */
    uint64_t bytes;      /* of its files */
    int64_t mtime_s;     /* of the file that makes it valid */
    uint64_t generation; /* ckpt_mark.h; 0: no run saved it; UINT64_MAX: it cannot be read */
};

struct mr_ckpt_folder {
    struct mr_ckpt_found *found; /* oldest first: by generation, then by step, then by time */
    size_t n, cap;
};

/* Add what is in `dir`, which begins at the folder `at` or at the present one for AT_FDCWD; may be
 * called for several folders.  0 or -errno. */
int mr_ckpt_folder_scan(struct mr_ckpt_folder *f, int at, const char *dir, struct mr_error *err);
void mr_ckpt_folder_fini(struct mr_ckpt_folder *f);

/* The digits behind the last '-' of a stem: 100 of "model.ckpt-100".  -1: there are none. */
int64_t mr_ckpt_step_of(const char *stem);

#endif
