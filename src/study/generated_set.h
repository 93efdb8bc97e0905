/* generated_set.h - the files of a generated set in their folder, and the proof that they are ours.
 *
 *     DIR/.millrace-generated         the mark: which files belong to the set; there before them
 *     DIR/class_0000/00000000.jpg     image 0 is of class 0, image 1 of class 1, ...
 *     DIR/list.csv                    path,label of every image; there after them */
#ifndef MR_GENERATED_SET_H
#define MR_GENERATED_SET_H

#include <millrace/api.h>

#include <stddef.h>
#include <stdint.h>

struct mr_generated_set {
    uint64_t count;
    uint32_t classes;
};

static inline uint32_t mr_generated_class(const struct mr_generated_set *s, uint64_t index)
{
    return (uint32_t)(index % s->classes);
}
/* "class_0007/00000123.jpg", what the list calls it. */
void mr_generated_name(const struct mr_generated_set *s, uint64_t index, char *buf, size_t cap);

/* Make `dir` ready for the set: the folder (its parent must exist), the mark and the folders of the
 * classes.  With `again` an earlier set goes first.
 *
 * -EEXIST: an earlier set is there.  -ENOTEMPTY: so is something that no mark proves to be ours;
 * then nothing is removed and nothing is written. */
int mr_generated_claim(const char *dir, const struct mr_generated_set *s, int again,
                       struct mr_error *err);

#endif
