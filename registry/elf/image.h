/* SPDX-License-Identifier: Apache-2.0
 *
 * An image as its dynamic section describes it, shared by the checks.
 */
#ifndef REGISTRY_ELF_IMAGE_H
#define REGISTRY_ELF_IMAGE_H

#include "registry/elf/elf.h"

#define MAX_ENTRIES 4096 /* of the dynamic section */
#define BLOCK 64         /* entries read at once */
#define WINDOW 4096

/* Tags by which a loader finds things, as places in struct image. */
enum {
    STRTAB,
    STRSZ,
    SYMTAB,
    SYMENT,
    RELA,
    RELASZ,
    RELAENT,
    RELACOUNT,
    JMPREL,
    PLTRELSZ,
    PLTREL,
    RELR,
    RELRSZ,
    RELRENT,
    INIT,
    FINI,
    INIT_ARRAY,
    INIT_ARRAYSZ,
    FINI_ARRAY,
    FINI_ARRAYSZ,
    HASH,
    GNU_HASH,
    VERSYM,
    VERNEED,
    VERNEEDNUM,
    VERDEF,
    VERDEFNUM,
    SONAME,
    RPATH,
    RUNPATH,
    TEXTREL,
    FLAGS,
    TAGS
};

struct image {
    const struct elf_source *source;
    const Elf64_Phdr *segments;
    size_t n_segments;
    uint16_t n_sections;
    bool has[TAGS];
    uint64_t value[TAGS];
    uint64_t needed[MAX_ENTRIES / 8]; /* offsets of names in the string table */
    size_t n_needed;
    uint64_t n_symbols, n_versions;
    uint64_t listed; /* symbols, by the section headers */
    uint64_t slots;  /* of initialisers and finalisers that a relocation fills */
    uint64_t tls;    /* bytes of a thread's block */
    uint64_t end;    /* of the last loaded segment */
    unsigned char
        window[WINDOW]; /* of the file, from window_at: tables are read in order */
    uint64_t window_at;
    size_t window_size;
};

/* image.c */
/* EMODULE: "damaged: WHAT". */
int elf_damaged(strata_error *err, const char *what);
/* False where [at, at + n), an address, is in no segment of the file. */
bool elf_read_image(struct image *m, uint64_t at, void *out, size_t n);
bool elf_is_code(const struct image *m, uint64_t at);
bool elf_inside(const struct image *m, int address, int size, uint64_t at);
bool elf_is_name(const struct image *m, uint64_t offset);
/* The loaded segment that has [at, at + n), or NULL; in_file: its bytes are in the file.
 */
const Elf64_Phdr *elf_segment(const struct image *m, uint64_t at, uint64_t n,
                              bool in_file);

/* contents.c */
int elf_check_versions(struct image *m, strata_error *err);
int elf_check_symbols(struct image *m, strata_error *err);
int elf_check_relocations(struct image *m, strata_error *err);

#endif /* REGISTRY_ELF_IMAGE_H */
