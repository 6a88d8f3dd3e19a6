/* SPDX-License-Identifier: Apache-2.0
 *
 * Names to integers: open addressing, linear probing, at most half full. The table's
 * address seeds the hash, so a file's author cannot know which names collide.
 */
#include "ini/names.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static size_t names_hash(const struct names *map, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)(uintptr_t)map->slots;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 20);
}

static struct names_slot *names_slot(const struct names *map, const char *name)
{
    size_t mask = map->capacity - 1;
    size_t i = names_hash(map, name) & mask;
    while (map->slots[i].name && strcmp(map->slots[i].name, name) != 0)
        i = (i + 1) & mask;
    return &map->slots[i];
}

static int names_resize(struct names *map, strata_error *err)
{
    struct names larger = {.capacity = map->capacity ? map->capacity * 2 : 64};
    larger.slots = zalloc(larger.capacity, sizeof *larger.slots, "a table of names", err);
    if (!larger.slots)
        return STRATA_ENOMEM;
    larger.n = map->n;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].name)
            *names_slot(&larger, map->slots[i].name) = map->slots[i];
    free(map->slots);
    *map = larger;
    return STRATA_OK;
}

int names_get(const struct names *map, const char *name)
{
    if (!map->n)
        return -1;
    const struct names_slot *slot = names_slot(map, name);
    return slot->name ? slot->value : -1;
}

int names_put(struct names *map, const char *name, int value, strata_error *err)
{
    if (2 * map->n >= map->capacity && names_resize(map, err) != STRATA_OK)
        return STRATA_ENOMEM;
    struct names_slot *slot = names_slot(map, name);
    map->n += !slot->name;
    *slot = (struct names_slot){name, value};
    return STRATA_OK;
}

void names_free(struct names *map)
{
    free(map->slots);
    *map = (struct names){0};
}
