/* SPDX-License-Identifier: Apache-2.0
 *
 * STRATA_CHECK=1: every node of a context under guard. Values and workspaces have memory
 * of their own with guards around it, outputs and workspaces hold NaN when a node begins,
 * and after each node the context waits and looks at what the node left.
 */
#ifndef ENGINE_CONTEXT_CHECK_H
#define ENGINE_CONTEXT_CHECK_H

#include "engine/context/context.h"

/* Bytes that memory is filled with. */
#define GUARD_POISON 0xff /* NaN in FP32 and FP16 */
#define GUARD_OTHER 0x3c  /* a number near 0.01 in FP32, near 1 in FP16 */

/* What a node must not change, and how it was. */
struct guard_kept {
    const void *data; /* on the device */
    size_t bytes;
    char *copy;
    const char *what;
    int index;
    const strata_tensor *but; /* whose elements may change; NULL: none */
};

/* Memory with a guard on each side; data NULL: none. */
struct guard_block {
    char *data;
    size_t bytes; /* between the guards */
    size_t room;  /* bytes allocated between them */
};

struct context_check {
    /* Per value that owns memory; of another size's, bindings are the whole's. */
    struct guard_block *values;
    struct guard_block workspace;
    struct guard_kept *kept;
    size_t n_kept, capacity;
    char *image; /* a tensor as it is on the device */
    size_t image_bytes;
};

/* guard.c */
/* Device memory to the host's, complete on return. */
int guard_fetch(strata_context *c, void *to, const void *from, size_t bytes,
                strata_error *err);
/* A block of zeros; free takes what there is of it. */
int guard_make(strata_context *c, struct guard_block *b, size_t bytes, strata_error *err);
void guard_free(strata_context *c, struct guard_block *b);
/* Fill the guards of a block; see that they are as they were. */
int guard_set(strata_context *c, const struct guard_block *b, strata_error *err);
int guard_check(strata_context *c, size_t node, const struct guard_block *b,
                const char *what, int index, strata_error *err);
/* Say before a message which node it is about; kind: "error: ", or "" for a warning. */
void guard_name(const strata_context *c, size_t node, const char *kind,
                strata_error *err);
/* Record what a node did. Returns EINTERNAL. */
int guard_found(const strata_context *c, size_t node, strata_error *err,
                const char *format, ...) PRINTF_LIKE(4, 5);
bool guard_overlap(const strata_tensor *a, const strata_tensor *b);
size_t guard_bytes(const strata_tensor *t);

/* check_tensor.c */
#define GUARD_PLACE 192 /* bytes of "(0, 3, 1, 2)" */
/* Output i after a run: pads as promised. Those of any content are poisoned for the
 * readers to come. */
int guard_output(strata_context *c, size_t node, int i, strata_error *err);
/* What the application bound as input i of a node must have pads of zero where they are
 * not declared otherwise. EINVAL names the binding. */
int guard_input(strata_context *c, size_t node, int i, strata_error *err);
/* Whether its elements are of a floating-point dtype. */
bool guard_can_be_nan(const strata_tensor *t);
/* The first NaN among a tensor's elements, for guard_look; -1: none. */
int guard_find_nan(strata_context *c, const strata_tensor *t, int64_t *at,
                   strata_error *err);
/* What is there now: NaN, GUARD_OTHER, or something else; and its index as text. */
enum guard_sight { GUARD_SEES_NAN, GUARD_SEES_FILL, GUARD_SEES_VALUE };
int guard_look(strata_context *c, const strata_tensor *t, int64_t at,
               enum guard_sight *seen, char text[GUARD_PLACE], strata_error *err);
/* Whether a tensor has all of its memory: it does not lie between others' channels. */
bool guard_is_dense(const strata_tensor *t);
/* Fill a tensor, pads included, and nothing between. */
int guard_fill(strata_context *c, const strata_tensor *t, int byte, strata_error *err);
/* Elements and pads of a tensor from an image of its memory into another. */
void guard_transfer(const strata_tensor *t, char *to, char *from);
/* Fill the pad lanes of a tensor whose pads may hold anything. */
int guard_fill_pads(strata_context *c, const strata_tensor *t, int byte,
                    strata_error *err);

#endif /* ENGINE_CONTEXT_CHECK_H */
