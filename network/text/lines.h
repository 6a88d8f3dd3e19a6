/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a network's text, keys with values as an INI file says them: shared by those
 * that write a network in one canonical form (write.c), as a person would (print.c), and
 * out of a model (import/).
 */
#ifndef NETWORK_LINES_H
#define NETWORK_LINES_H

#include <stdio.h>

#include "core/status.h"
#include "formats/format.h"
#include "registry/registry.h"

struct lines {
    FILE *f;
    const char *section; /* for messages */
    const char *gap;     /* between what a list holds */
    bool quoted;         /* all texts, not only those that need it */
    strata_error *err;
    int status; /* of the first line that cannot be written */
};

/* A line of any value: what is written between the two is measured. */
long line_begin(struct lines *w, const char *key);
void line_end(struct lines *w, const char *key, long at);

/* Blanks and '#' stay, by quotes; a quote and " ;" have no way to be written. */
void line_text(struct lines *w, const char *key, const char *text);
/* The shortest decimals that read back as the same values. */
void line_reals(struct lines *w, const char *key, const double *v, int64_t n);
void line_ints(struct lines *w, const char *key, const int64_t *v, int64_t n);
/* A name's range, and the sizes listed of it. */
struct line_range {
    int64_t least, most, step;
    const int64_t *sizes;
    size_t n;
};
/* As a list where that says all: older readers know no range. */
void line_sizes(struct lines *w, const char *key, struct line_range r);
void line_int(struct lines *w, const char *key, int64_t value);
void line_flag(struct lines *w, const char *key, bool value);
void line_word(struct lines *w, const char *key, const char *word);
/* "1x3x224". */
void line_dims(struct lines *w, const char *key, const int64_t *v, int n);
/* The index-th of "a|b|c". */
void line_choice(struct lines *w, const char *key, const char *choices, int index);
/* The formats of a mask. */
void line_formats(struct lines *w, const char *key, uint64_t mask);
/* A format's name, inside of a line. */
void line_format(struct lines *w, struct format format, int rank);

void line_attribute(struct lines *w, const strata_attr *a, const void *params);
/* Attributes that have not their default. named, or NULL, gives the text of one that
 * holds names of [profile]; NULL: it holds none. */
void line_attributes(struct lines *w, const struct registry_layer *type,
                     const void *params,
                     const char *(*named)(const void *of, const char *key),
                     const void *of);
/* Whether the tensor is LAYER.WEIGHT, where `weights = w:LAYER` finds it; false of NULL.
 */
bool line_owns(const char *tensor, const char *layer, const char *weight);
/* Where a layer's weights are in the file of [weights w]; tensor: the name of one, NULL:
 * it is absent; "": the file has but one. */
void line_weights(struct lines *w, const char *layer, const struct registry_layer *type,
                  const char *(*tensor)(const void *of, size_t weight), const void *of);

/* Close the stream, which text_stream gave for *text. False: *text is NULL, and the
 * status says why. */
bool lines_finish(struct lines *w, char **text, size_t size);

#endif /* NETWORK_LINES_H */
