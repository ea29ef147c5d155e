/* SPDX-License-Identifier: Apache-2.0
 *
 * The C ABI of the pybench tokenizer: exact byte-level BPE for Python (cffi) and Go (dlopen), from one shared object.
 *
 * Rules that every function keeps:
 *  - What can fail returns a pbt_status, and its results leave through pointers. No panic and no exception crosses this
 *    boundary.
 *  - The caller owns every buffer. Nothing returned here has to be freed, except the three opaque handles.
 *  - A pbt_model is immutable and may be shared by any number of threads. A pbt_worker (cache and scratch memory)
 *    belongs to one thread at a time and keeps its model alive; models and workers may be freed in any order.
 *  - Text is UTF-8. Ids are written with pbt_model_id_bytes() bytes each, native endian: 2 when every id fits, else 4.
 *  - On PBT_ERROR_FORMAT and PBT_ERROR_UNSUPPORTED a message (UTF-8, no NUL, cut to the capacity) is written to
 *    `message` where there is one. Its length is written to *message_bytes; on success that is 0. Other failures may
 *    leave it.
 */
#ifndef PYBENCH_TOKENIZER_H
#define PYBENCH_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a signature or a meaning below changes; both sides compare it before anything else. */
#define PBT_ABI_VERSION 2u

typedef int32_t pbt_status;
#define PBT_OK 0
#define PBT_ERROR_ARGUMENT 1    /* null or misaligned pointer, offsets out of order, a cache size out of range */
#define PBT_ERROR_FORMAT 3      /* the file is not well formed */
#define PBT_ERROR_UNSUPPORTED 4 /* well formed, but asks for what is not implemented here; the message names it */
#define PBT_ERROR_UTF8 5        /* the text is not UTF-8; *position tells where */
#define PBT_ERROR_CAPACITY 6    /* the output buffer is too small; *count tells how much is needed at the most */
#define PBT_ERROR_ID 7          /* an id or a token outside the vocabulary */
#define PBT_ERROR_INTERNAL 8    /* a caught panic: a defect of this library */
#define PBT_ERROR_MEMORY 9      /* training: distinct words need more than table_bytes_max */

typedef struct pbt_model pbt_model;
typedef struct pbt_worker pbt_worker;
typedef struct pbt_trainer pbt_trainer;

uint32_t pbt_abi_version(void);

/* Name and version, NUL-terminated, static: "pybench-tokenizer 0.1.0". */
const char *pbt_build_id(void);

/* Loads a Hugging Face tokenizer.json from memory. */
pbt_status pbt_model_load(const uint8_t *json, size_t json_bytes, pbt_model **model, char *message,
                          size_t message_capacity, size_t *message_bytes);
/* Loads a tiktoken rank file (a token in base64 and its rank on each line) from memory. `family` names the splitting
 * rule: gpt2, llama3, cl100k or o200k. The texts of special_count special tokens lie end to end in `specials`; token i
 * ends at special_ends[i] and has the id special_ids[i]. */
pbt_status pbt_model_load_ranks(const uint8_t *ranks, size_t ranks_bytes, const uint8_t *family, size_t family_bytes,
                                const uint8_t *specials, const uint64_t *special_ends, const uint32_t *special_ids,
                                size_t special_count, pbt_model **model, char *message, size_t message_capacity,
                                size_t *message_bytes);
void pbt_model_free(pbt_model *model);

/* Bytes that a model holds, for all its threads together; 0 for a null model. */
size_t pbt_model_bytes(const pbt_model *model);
/* The largest id and 1, special tokens included; 0 for a null model. */
uint32_t pbt_model_vocab_size(const pbt_model *model);
/* 2 or 4; 0 for a null model. */
uint32_t pbt_model_id_bytes(const pbt_model *model);
/* The id of a token given as the file writes it, special tokens included; PBT_ERROR_ID when there is none. */
pbt_status pbt_model_token_to_id(const pbt_model *model, const uint8_t *token, size_t token_bytes, uint32_t *id);

/* cache_entries: 0 for no cache, else a power of two up to 2^24. */
pbt_status pbt_worker_new(const pbt_model *model, size_t cache_entries, pbt_worker **worker);
void pbt_worker_free(pbt_worker *worker);
/* Bytes that this worker holds between calls at most, cache and scratch; 0 for a null worker. */
size_t pbt_worker_bytes(const pbt_worker *worker);

/* Encodes document_count documents that lie end to end in `text`: document i is text[offsets[i] .. offsets[i + 1]),
 * so `offsets` has document_count + 1 non-decreasing entries; a document is shorter than 2^32 - 1 bytes. The ids of all
 * documents are written end to end to `ids`, whose capacity is counted in ids: offsets[document_count] - offsets[0] ids
 * always suffice. id_offsets, of document_count + 1 entries, tells where each begins. Special tokens that occur in the
 * text become their id, as in Hugging Face tokenizers. *count: ids written, or on PBT_ERROR_CAPACITY what always
 * suffices. *position: byte offset in `text` of the first bad byte on PBT_ERROR_UTF8. */
pbt_status pbt_encode_batch(pbt_worker *worker, const uint8_t *text, const uint64_t *offsets, size_t document_count,
                            void *ids, size_t ids_capacity, uint64_t *id_offsets, size_t *count, size_t *position);

/* Decodes ids to bytes, special tokens included as their text. *count: bytes written, or needed on PBT_ERROR_CAPACITY.
 * *position: index of the offending id on PBT_ERROR_ID. */
pbt_status pbt_decode(const pbt_model *model, const void *ids, size_t id_count, uint8_t *bytes, size_t bytes_capacity,
                      size_t *count, size_t *position);

/* Training: documents are counted as they are fed, then a vocabulary is learned from the counts, as often as wanted. A
 * trainer belongs to one thread at a time. `family` names the splitting rule: gpt2, llama3 or o200k.
 * table_bytes_max: how many bytes the table of distinct words may take. */
pbt_status pbt_trainer_new(const uint8_t *family, size_t family_bytes, size_t table_bytes_max, pbt_trainer **trainer,
                           char *message, size_t message_capacity, size_t *message_bytes);
void pbt_trainer_free(pbt_trainer *trainer);
/* Distinct words so far; 0 for a null trainer. */
size_t pbt_trainer_words(const pbt_trainer *trainer);
/* Counts the words of documents, given as for pbt_encode_batch. PBT_ERROR_MEMORY when the table would grow beyond its
 * limit. *position: as for pbt_encode_batch. After an error some of the documents are counted, some not. */
pbt_status pbt_trainer_feed(pbt_trainer *trainer, const uint8_t *text, const uint64_t *offsets, size_t document_count,
                            size_t *position);
/* Learns a vocabulary of vocab_size tokens: the special tokens, the 256 bytes, and merges of pairs that occur
 * frequency_min times at the least. The special tokens lie as for pbt_model_load_ranks and get the first ids.
 * *json_bytes: the size of its tokenizer.json, which the trainer keeps until it trains again. */
pbt_status pbt_trainer_train(pbt_trainer *trainer, uint32_t vocab_size, uint64_t frequency_min, const uint8_t *specials,
                             const uint64_t *special_ends, size_t special_count, size_t *json_bytes, char *message,
                             size_t message_capacity, size_t *message_bytes);
/* Copies that tokenizer.json. *count: its bytes, also on PBT_ERROR_CAPACITY. */
pbt_status pbt_trainer_json(const pbt_trainer *trainer, uint8_t *json, size_t json_capacity, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
