"""The tables of results of the five papers, as data with their sources.

One JSON file per paper; `published_tables` reads them. What is there, by `benchmark`:

| benchmark | metric | papers and tables |
|---|---|---|
| sts | spearman_all | Ni 1, 3, 5; Tsukagoshi 3, 5; Liu 1, 4, 6, 7, 13, 14 |
| senteval | accuracy | Cer 2; Ni 1, 2, 5; Tsukagoshi 4, 6 |
| sentglue | mixed | Ni 6 |
| pairs | auc | Liu 2, 3, 5, 9, 11, 12, 14 |
| stsb_pearson | pearson | Cer 2 |
| weat | effect_size, p_value | Cer 4 |
| tatoeba | accuracy | Yano 1, 2, 5 |
| bucc | f1 | Yano 1, 5 |
| xsts | spearman | Yano 1, 4, 5 |
| monolingual_sts | spearman | Yano 3 |

Cer is the Universal Sentence Encoder, Ni Sentence-T5, Yano its multilingual extension, Tsukagoshi
SBERT and DefSent with their combinations, Liu Trans-Encoder. Each paper's `notes` name the tables
that are not here, each table's the protocol and where the paper disagrees with itself. The papers'
figures print no numbers.
"""
