/* SPDX-License-Identifier: Apache-2.0
 *
 * strata deploy: engine files as a model of a Triton repository; and the key of an engine
 * that is not built yet.
 */
#ifndef TOOLS_DEPLOY_DEPLOY_H
#define TOOLS_DEPLOY_DEPLOY_H

#include "engine/file/stored.h"
#include "tools/tool.h"

/* An engine file and what it is for. */
struct deployed {
    const char *path;
    struct engine_file file;
    strata_network *network;
    char kind[8], device[64], name[32]; /* "cuda", the GPU's name; the file's to be */
    int sm;
    const char *checked; /* how */
};

/* A model: what its engines have in common. */
struct deployment {
    const char *repository, *name;
    char own_name[256];
    int64_t version; /* 0: the next */
    struct deployed *engines;
    size_t n;
    int64_t batch; /* rows at most; 0: shapes hold them */
    int64_t batches[CONFIG_MAX_SIZES];
    size_t n_batches;
    bool keeps_config; /* there is one, and it is left */
    char *lacking; /* lines of the engines' own config that it has not; ours to free */
};

/* repository.c: the model's folder, with nothing of it visible before it is whole. */
int deploy_write(struct deployment *d, bool force, strata_error *err);
/* config.c: the text of config.pbtxt, the caller's to free; NULL: no memory. `labels` is
 * set where a labels.txt belongs to it. */
char *deploy_config(const struct deployment *d, bool *labels);
/* key.c: 64 hex digits of all that decides an engine's bytes, before it is built. */
int deploy_key(char out[65], const struct tool_session *s, strata_error *err);

#endif /* TOOLS_DEPLOY_DEPLOY_H */
