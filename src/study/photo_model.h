/* photo_model.h - what the photos of a known data set weigh and measure, and draws from that. */
#ifndef MR_PHOTO_MODEL_H
#define MR_PHOTO_MODEL_H

#include "jpeg_encode.h"

enum mr_preset {
    MR_PRESET_IMAGENET,   /* ImageNet's training photos */
    MR_PRESET_CALTECH101, /* Caltech-101 */
};
#define MR_N_PRESETS 2

#define MR_PHOTO_ROWS 100

/* One photo to be made. */
struct mr_photo_plan {
    unsigned width, height;
    unsigned quality;
    enum mr_chroma chroma;
    int optimize;           /* Huffman tables of its own */
    uint32_t n_bytes;       /* of the whole file */
    unsigned plain_percent; /* how often such photos have an even background */
    uint32_t comment_bytes; /* of them: thumbnails, profiles and the like in the real photo */
};

const char *mr_preset_name(enum mr_preset preset);
/* How many images and classes the preset has when nobody says otherwise. */
uint64_t mr_preset_count(enum mr_preset preset);
uint32_t mr_preset_classes(enum mr_preset preset);

/* Photo `index` of a set: a pure function of its arguments.  Every 100 consecutive photos hold
 * each hundredth of the file sizes once, so that small sets have the right quantiles, too. */
void mr_photo_plan_draw(enum mr_preset preset, uint64_t seed, uint64_t index,
                        struct mr_photo_plan *out);

#endif
