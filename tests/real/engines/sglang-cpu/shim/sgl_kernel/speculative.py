import torch


def reconstruct_indices_from_tree_mask(
    tree_mask, verified_seq_len, positions, retrieve_index, retrieve_next_token, retrieve_next_sibling, bs, n
):
    """Semantics of kernels/ops/speculative/reconstruct_tree.py, torch version."""
    m = tree_mask.view(-1)[: bs * n * n].view(bs, n, n).bool()
    i = torch.arange(n)
    anc = m & (i[None, :] < i[:, None])
    pos = anc.sum(-1) + verified_seq_len.view(-1, 1)
    parent = torch.where(anc, i, -1).amax(-1)
    first_child = torch.where(anc, i[:, None], n).amin(1)
    same = (parent[:, :, None] == parent[:, None, :]) & (i[:, None] > i[None, :])
    sib = torch.where(same, i[:, None], n).amin(1)
    positions.view(-1)[: bs * n] = pos.view(-1).to(positions.dtype)
    retrieve_index.view(-1)[: bs * n] = torch.arange(bs * n, dtype=retrieve_index.dtype)
    retrieve_next_token.view(-1)[: bs * n] = torch.where(first_child < n, first_child, -1).view(-1)
    retrieve_next_sibling.view(-1)[: bs * n] = torch.where((parent >= 0) & (sib < n), sib, -1).view(-1)
