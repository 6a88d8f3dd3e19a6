/* SPDX-License-Identifier: Apache-2.0
 *
 * Random networks as INI text: layers of many types in chains and branches, blocks of
 * layers among them, some of their formats pinned.
 */
#ifndef TESTS_ENGINE_NETWORK_DRAW_H
#define TESTS_ENGINE_NETWORK_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_NODES 48

struct node {
    int rank;
    int64_t dims[5];
    char text[512]; /* the section's keys, without pins */
    char pin[96];   /* "format = ..." lines, or empty */
};

/* Nodes 0 and 1 are inputs, the others layers; node i is named n<i>. */
struct sketch {
    uint64_t state; /* of the generator */
    struct node nodes[MAX_NODES];
    int n;
    bool half; /* may hold FP16 */
    int device;
};

/* 0 to sides - 1. */
int sketch_roll(struct sketch *s, int sides);
/* device: kind of the device that the pins are for. */
void sketch_draw(struct sketch *s, unsigned seed, int device);
/* The plain twin, whose outputs are all layers, in FP32 and linear, unfused; or the
 * other: its outputs are what nothing reads, and some that are. */
void sketch_write(struct sketch *s, const char *path, bool plain);

#endif /* TESTS_ENGINE_NETWORK_DRAW_H */
