/* compare_data.c - are two studies of the same data set?  See report.h.
 *
 * The same files may lie in different places, so a path says nothing where the number of images and
 * classes and the mean size of a file are known: these are equal for the same files, and for hardly
 * any others. */
#include "report.h"

#include "points.h"
#include "scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXACT      1e-6
#define MOST_SIZES 100000 /* files: of more the mean is that of a part, by their order */
#define SAMPLED    0.02 /* sizes that stray by their mean: 4 times what two such parts differ by */

/* 1 when both are known and are not the same. */
static int differ(double a, double b, double tolerance)
{
    return isfinite(a + b) && fabs(a - b) > tolerance * fmax(fabs(a), fabs(b));
}

/* "2,048 images of 111 KB in photos" */
static void put_into_words(const struct mr_study_data_set *d, char *buf, size_t cap)
{
    char images[32], size[48] = "", bytes[32];
    mr_number_text(d->images, images, sizeof images);
    if (d->file_bytes > 0 && isfinite(d->file_bytes))
        snprintf(size, sizeof size, " of %s KB",
                 mr_number_text(d->file_bytes / 1e3, bytes, sizeof bytes));
    snprintf(buf, cap, "%s images%s in %.200s", images, size, d->path ? d->path : "-");
}

int mr_report_data_differ(const struct mr_json *a, const struct mr_json *b, char *why, size_t cap)
{
    struct mr_study_data_set x = mr_study_data_set_of(mr_study_results_of(a).data),
                             y = mr_study_data_set_of(mr_study_results_of(b).data);
    char of_x[320], of_y[320];
    int known = isfinite(x.file_bytes + y.file_bytes) || (x.generated && y.generated);
    int other = differ(x.images, y.images, EXACT) || differ(x.classes, y.classes, EXACT) ||
                differ(x.file_bytes, y.file_bytes, x.images > MOST_SIZES ? SAMPLED : EXACT) ||
                (!known && x.path && y.path && strcmp(x.path, y.path));
    if (!other)
        return 0;
    put_into_words(&x, of_x, sizeof of_x);
    put_into_words(&y, of_y, sizeof of_y);
    snprintf(
        why, cap,
        "The studies are of different data sets: %s, and %s. What differs may be the data, not "
        "the machine or its storage.",
        of_x, of_y);
    return 1;
}
