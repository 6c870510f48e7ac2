"""Stands in for the CPU build of sgl_kernel, which is on no registry. For tests only.

Every function is one compiled operator, said in plain torch: copies of cache rows, indices, the verification of a tree,
attention. `convert_weight_packed` is missing on purpose: SGLang then takes its own plain code for everything else.
"""

import ctypes

import torch

from . import speculative as speculative

__version__ = "0.0.0+ddprobe.shim"


# ---- kv cache -------------------------------------------------------------------------------
def copy_all_layer_kv_cache_cpu(data_ptrs, strides, tgt_loc, src_loc):
    tgt, src = tgt_loc.tolist(), src_loc.tolist()
    for ptr, stride in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(ptr + s * stride, stride) for s in src]
        for t, row in zip(tgt, rows, strict=True):
            ctypes.memmove(ptr + t * stride, row, stride)


def assign_req_to_token_pool_cpu(req_pool_indices, req_to_token, start, end, out_cache_loc, pool_len):
    pt = 0
    for r, s, e in zip(req_pool_indices.tolist(), start.tolist(), end.tolist(), strict=False):
        req_to_token[r, s:e] = out_cache_loc[pt : pt + e - s].to(req_to_token.dtype)
        pt += e - s


def assign_extend_cache_locs_cpu(req_pool_indices, req_to_token, start, end, out_cache_loc, pool_len):
    pt = 0
    for r, s, e in zip(req_pool_indices.tolist(), start.tolist(), end.tolist(), strict=False):
        out_cache_loc[pt : pt + e - s] = req_to_token[r, s:e].to(out_cache_loc.dtype)
        pt += e - s


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices, req_to_token, seq_lens, out_cache_loc, pool_len, topk, num_cols
):
    n = topk * num_cols
    for i, (r, s) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=False)):
        out_cache_loc[i * n : (i + 1) * n] = req_to_token[r, s : s + n].to(out_cache_loc.dtype)


def build_draft_decode_metadata_cpu(req_to_token, req_pool_indices, seq_lens, topk, num_steps, pool_len):
    bs = seq_lens.numel()
    out = torch.zeros((bs * topk, pool_len), dtype=req_to_token.dtype)
    for b, (r, s) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=False)):
        for t in range(topk):
            row = out[b * topk + t]
            row[:s] = req_to_token[r, :s]
            lo = s + t * num_steps
            n = min(num_steps, pool_len - s, req_to_token.shape[1] - lo)
            row[s : s + n] = req_to_token[r, lo : lo + n]
    return out


# ---- speculative bookkeeping ---------------------------------------------------------------
def fill_bonus_tokens_cpu(accept_tokens, accept_lens, bonus_tokens, accept_stride):
    idx = torch.arange(accept_lens.numel()) * accept_stride + accept_lens.long() - 1
    bonus_tokens[: accept_lens.numel()] = accept_tokens.flatten()[idx].to(bonus_tokens.dtype)


def fill_accept_out_cache_loc_cpu(accept_index, out_cache_loc, accept_out_cache_loc):
    idx = accept_index.flatten()
    idx = idx[idx > -1].long()
    accept_out_cache_loc[: idx.numel()] = out_cache_loc[idx]


def rotate_input_ids_cpu(input_ids, extend_start_loc, extend_seq_lens, topk_index, select_index=None):
    tok = topk_index.flatten().tolist()
    sel = None if select_index is None else select_index.tolist()
    for i, (s, n) in enumerate(zip(extend_start_loc.tolist(), extend_seq_lens.tolist(), strict=False)):
        if n <= 0:
            continue
        input_ids[s : s + n - 1] = input_ids[s + 1 : s + n].clone()
        input_ids[sel[i] if sel is not None else s + n - 1] = tok[i]


def build_tree_kernel_efficient_cpu(
    parent_list,
    selected_index,
    seq_lens,
    tree_mask,
    positions,
    retrieve_index,
    retrieve_next_token,
    retrieve_next_sibling,
    topk,
    depth,
    n,
    mode,
):
    """Port of sgl_build_tree_kernel_efficient_triton (FULL_MASK=0, QLEN_ONLY=1)."""
    bs = seq_lens.numel()
    parents, selected, lens = parent_list.tolist(), selected_index.tolist(), seq_lens.tolist()
    pos, ri = positions.view(-1), retrieve_index.view(-1)
    rn, rs, mask = retrieve_next_token.view(bs, -1), retrieve_next_sibling.view(bs, -1), tree_mask.view(-1)
    prefix = 0
    for b in range(bs):
        L, sel, par = lens[b], selected[b], parents[b]
        base = n * n * b + prefix * n
        pos[b * n] = L
        ri[b * n] = b * n
        for i in range(n - 1, 0, -1):
            ri[b * n + i] = b * n + i
            ptb = sel[i - 1] // topk
            pp = 0 if ptb == 0 else (sel.index(par[ptb]) + 1 if par[ptb] in sel[: n - 1] else None)
            if pp is None:
                continue
            nxt = int(rn[b, pp])
            rn[b, pp] = i
            if nxt != -1:
                rs[b, i] = nxt
        for d in range(n):
            off = (base + (L + n) * d + L + 1) if int(mode) == 0 else (n * n * b + n * d + 1)
            mask[off - 1] = True
            mask[off : off + n - 1] = False
            if d > 0:
                cur, p = d - 1, 0
                for _ in range(depth):
                    p += 1
                    mask[off + cur] = True
                    ptb = sel[cur] // topk
                    if ptb == 0 or par[ptb] not in sel[: n - 1]:
                        break
                    cur = sel.index(par[ptb])
                pos[b * n + d] = p + L
        prefix += L


def verify_tree_greedy_cpu(
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    target_predict,
):
    bs, n = candidates.shape
    depth = accept_index.shape[1]
    cand, ri = candidates.tolist(), retrive_index.view(bs, n).tolist()
    rn, rs = retrive_next_token.view(bs, n).tolist(), retrive_next_sibling.view(bs, n).tolist()
    tgt = target_predict.reshape(-1).tolist()
    for b in range(bs):
        last, k, cur = ri[b][0], 0, 0
        accept_index[b, 0] = last
        for _ in range(1, depth):
            cur = rn[b][cur]
            while cur != -1:
                if cand[b][cur] == tgt[last]:
                    predicts[last] = tgt[last]
                    k += 1
                    last = ri[b][cur]
                    accept_index[b, k] = last
                    break
                cur = rs[b][cur]
            if cur == -1:
                break
        accept_token_num[b] = k
        predicts[last] = tgt[last]


# ---- attention ------------------------------------------------------------------------------
def _attn(q, k, v, scale, cap, mask, sinks):
    """q [Tq,H,D]; k,v [Tk,Hkv,D]; mask [Tq,Tk] bool or None."""
    H, Hk = q.shape[1], k.shape[1]
    qf, kf, vf = q.float().transpose(0, 1), k.float().transpose(0, 1), v.float().transpose(0, 1)
    if Hk != H:
        kf, vf = kf.repeat_interleave(H // Hk, 0), vf.repeat_interleave(H // Hk, 0)
    s = qf @ kf.transpose(1, 2) * scale
    if cap and cap > 0:
        s = cap * torch.tanh(s / cap)
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    if sinks is not None:
        s = torch.cat([s, sinks.float().view(-1, 1, 1).expand(-1, s.shape[1], 1)], -1)
        return (s.softmax(-1)[..., :-1] @ vf).transpose(0, 1)
    return (s.softmax(-1) @ vf).transpose(0, 1)


def _extend(
    q,
    k,
    v,
    o,
    kb,
    vb,
    k_scale,
    v_scale,
    req_to_token,
    req_pool_indices,
    seq_lens,
    ext_lens,
    ext_start,
    max_len_extend,
    sm_scale,
    logit_cap,
    is_cross_attn,
    sliding_window,
    encoder_lens,
    sinks,
    tree_mask,
    is_causal,
):
    assert not is_cross_attn
    moff = 0
    for _b, (r, L, n, st) in enumerate(
        zip(req_pool_indices.tolist(), seq_lens.tolist(), ext_lens.tolist(), ext_start.tolist(), strict=False)
    ):
        p = L - n
        loc = req_to_token[r, :L].long()
        kk, vv = kb[loc], vb[loc]
        if k is not None:
            kk = torch.cat([kk[:p], k[st : st + n].view(n, *kb.shape[1:]).to(kb.dtype)])
            vv = torch.cat([vv[:p], v[st : st + n].view(n, *vb.shape[1:]).to(vb.dtype)])
        mask = None
        if tree_mask is not None:
            m = tree_mask.view(-1)[moff : moff + n * n].view(n, n).bool()
            moff += n * n
            mask = torch.cat([torch.ones(n, p, dtype=torch.bool), m], 1)
        elif is_causal:
            mask = torch.arange(L)[None] <= torch.arange(p, L)[:, None]
        if sliding_window and sliding_window > 0:
            w = torch.arange(L)[None] > torch.arange(p, L)[:, None] - sliding_window
            mask = w if mask is None else mask & w
        o[st : st + n] = _attn(q[st : st + n], kk, vv, sm_scale, logit_cap, mask, sinks).to(o.dtype)


def _decode(
    q,
    kb,
    vb,
    k_scale,
    v_scale,
    o,
    k,
    v,
    loc,
    attn_logits,
    req_to_token,
    req_pool_indices,
    seq_lens,
    sm_scale,
    logit_cap,
    is_cross_attn,
    sliding_window,
    encoder_lens,
    sinks,
):
    assert not is_cross_attn
    if k is not None:
        kb[loc] = k.view(-1, *kb.shape[1:]).to(kb.dtype)
        vb[loc] = v.view(-1, *vb.shape[1:]).to(vb.dtype)
    for b, (r, L) in enumerate(zip(req_pool_indices.tolist(), seq_lens.tolist(), strict=False)):
        lo = max(0, L - sliding_window) if sliding_window and sliding_window > 0 else 0
        idx = req_to_token[r, lo:L].long()
        o[b : b + 1] = _attn(q[b : b + 1], kb[idx], vb[idx], sm_scale, logit_cap, None, sinks).to(o.dtype)


_LIB = torch.library.Library("sgl_kernel", "FRAGMENT")
_LIB.define(
    "extend_attention_cpu(Tensor q, Tensor? k, Tensor? v, Tensor(a!) o, Tensor(b!) kb, Tensor(c!) vb, "
    "float k_scale, float v_scale, Tensor req_to_token, Tensor req_pool_indices, Tensor seq_lens, "
    "Tensor ext_lens, Tensor ext_start, int max_len, float sm_scale, float logit_cap, bool is_cross_attn, "
    "int sliding_window, Tensor? encoder_lens, Tensor? sinks, Tensor? tree_mask, bool is_causal) -> ()"
)
_LIB.define(
    "decode_attention_cpu(Tensor q, Tensor(b!) kb, Tensor(c!) vb, float k_scale, float v_scale, "
    "Tensor(a!) o, Tensor? k, Tensor? v, Tensor loc, Tensor attn_logits, Tensor req_to_token, "
    "Tensor req_pool_indices, Tensor seq_lens, float sm_scale, float logit_cap, bool is_cross_attn, "
    "int sliding_window, Tensor? encoder_lens, Tensor? sinks) -> ()"
)


_LIB.impl("extend_attention_cpu", _extend, "CPU")
_LIB.impl("decode_attention_cpu", _decode, "CPU")
