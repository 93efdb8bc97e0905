/* view_read.c - reading whole files. */
#include "view_rates.h"

static void show(struct mr_view *v)
{
    mr_show_rates(v, "read", "Reading whole files");
    mr_show_shares(v);
}

static const struct mr_measure measures[] = {{.id = "read",
                                              .title = "Reading files",
                                              .link = "Read",
                                              .field = MR_FIELD(read_point, images_per_s),
                                              .unit = "files/s",
                                              .keys = mr_rate_keys,
                                              .each = MR_FIELD(read_point, runs)},
                                             {0}};

const struct mr_section mr_section_read = {
    .title = "Reading files",
    .link = "Read",
    .question = "How much of that does reading whole files reach?",
    .study = "From 1 to 2, 4, 8 threads an HDD gains 1.65, 1.95, 2.3 times, Lustre 7.8 times at 8; "
             "SSD and Optane nearly double from 1 to 2.",
    .repeats = {MR_REF_CHIEN, "Figure 5", "reading alone over threads",
                "millrace bench --data DIR --map read --threads 1,2,4,8 --cold"},
    .emulated = MR_ORIGIN_CALIBRATED,
    .show = show,
    .each = MR_FIELD(read_point, runs),
    .measures = measures,
};
