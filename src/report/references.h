/* references.h - the studies that are repeated here. */
#ifndef MR_REFERENCES_H
#define MR_REFERENCES_H

enum mr_reference_key { MR_REF_CHIEN, MR_REF_CHOWDHURY, MR_REF_NELSON, MR_N_REFERENCES };

struct mr_reference {
    const char *name; /* by which the text calls it: "Chien et al. 2018" */
    const char *authors, *title;
    const char *published; /* where and when */
    const char *where;     /* its DOI, else what there is instead */
};
extern const struct mr_reference mr_references[MR_N_REFERENCES];

/* The figure of a study that an experiment repeats. */
struct mr_repeats {
    enum mr_reference_key of;
    const char *figure;  /* "Table I"; NULL: none */
    const char *shows;   /* a few words */
    const char *by_hand; /* the command that does it alone */
};

#endif
