/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of host memory to a device, and back: by pieces through a few that are pinned,
 * so that some are on their way while others are filled or emptied, by several threads.
 */
#ifndef ENGINE_STAGING_H
#define ENGINE_STAGING_H

#include <pthread.h>

#include "core/handle.h"
#include "engine/carriers.h"

/* Few bytes: pinning and unpinning them takes half a millisecond a MiB. Each thread that
 * fills has two slots of the largest piece. */
enum { STAGING_SLOTS = 2 * (CARRIERS_MOST + 1), STAGING_PIECE = 512 << 10 };

/* Or where what comes back goes to. */
struct staging_source {
    const void *data;
    size_t bytes;
};

/* A piece: where it is on the device, and where it begins on the host. */
struct staging_piece {
    size_t at, bytes;
    const struct staging_source *source;
    size_t offset;
};

struct staging {
    struct carriers_job job; /* what is sent now */
    strata_handle *handle;
    strata_stream *stream;
    bool keeps;         /* memory for whole batches: nothing waits for slots */
    bool again;         /* what is sent next is a run's first */
    char *whole;        /* of all that is sent for a run */
    size_t room, taken; /* bytes of it, and those that are in use */
    size_t wanted;      /* that the run has sent */
    char *at_whole;     /* where that begins which is sent now */
    bool whole_sent;
    char *pinned; /* of all slots; NULL until something is sent by them */
    strata_event *sent[STAGING_SLOTS];
    bool used[STAGING_SLOTS];
    bool turn[CARRIERS_MOST + 1];                   /* of each thread's two */
    struct staging_piece coming[CARRIERS_MOST + 1]; /* its last one, on its way back */
    pthread_mutex_t lock; /* of what follows, and of the stream meanwhile */
    char *dst;
    const struct staging_source *source; /* that is taken next, */
    size_t offset;                       /* from this byte on */
    size_t bytes, at; /* of the sources; pieces before `at` are taken */
    size_t piece;     /* bytes of one, at most STAGING_PIECE */
    bool by_slots;    /* else pieces lie as they will in dst */
    bool halves;      /* FP32 becomes FP16 on the way */
    strata_error *err;
    int status;
};

/* To be closed also if nothing is sent. */
void staging_open(struct staging *s, strata_handle *handle, strata_stream *stream);
/* Keep memory for all that is sent from one staging_begin to the next, up to a bound:
 * as contexts do for their runs. */
void staging_keep(struct staging *s);
void staging_begin(struct staging *s);
/* Put on the stream; src is the caller's again on return. */
int staging_send(struct staging *s, void *dst, const void *src, size_t bytes,
                 strata_error *err);
/* The same of several, one behind the other, in one go. */
int staging_send_all(struct staging *s, void *dst, const struct staging_source *sources,
                     size_t n, strata_error *err);
/* Of sources that are whole elements of FP32, aligned as such: dst gets them rounded to
 * FP16 as reformats round. */
int staging_send_halves(struct staging *s, void *dst,
                        const struct staging_source *sources, size_t n,
                        strata_error *err);
/* From src on the device, behind what is on the stream, complete on return. */
int staging_receive_all(struct staging *s, const struct staging_source *targets, size_t n,
                        const void *src, strata_error *err);
/* Until all that is on the stream is done. */
int staging_wait(struct staging *s, strata_error *err);
/* Waits too, as nothing may still be on its way. */
void staging_close(struct staging *s);

#endif /* ENGINE_STAGING_H */
