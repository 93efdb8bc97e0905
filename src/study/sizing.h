/* sizing.h - how many accelerators a machine feeds: by its storage, by its cores, and as measured.
 *
 * A bound follows from what was measured of one part alone, and is never below what the whole has
 * delivered: that much is possible. */
#ifndef MR_SIZING_H
#define MR_SIZING_H

#include "advice.h"
#include "json.h"

struct mr_sizing {
    unsigned cores;
    double image_bytes;    /* of a file, on average */
    double storage_per_s;  /* files that the storage has delivered, not decoded */
    double cores_per_s;    /* images that the cores read and decode */
    double measured_per_s; /* that the pipeline delivered, from the storage as it is */
};

/* Other runs of a study; NaN or 0: there were none. */
struct mr_sizing_known {
    double read_per_s;    /* the most files a second from the storage as it is */
    double decoded_per_s; /* the most images a second, from whatever storage */
};

void mr_sizing_take(const struct mr_findings *f, const struct mr_advice *a, double image_bytes,
                    const struct mr_sizing_known *known, struct mr_sizing *out);
/* `sizing`, `by_bandwidth` and `by_cores` of docs/json.md. */
struct mr_json *mr_sizing_json(const struct mr_sizing *s);
struct mr_json *mr_sizing_by_bandwidth(const struct mr_sizing *s);
struct mr_json *mr_sizing_by_cores(const struct mr_sizing *s);

#endif
