"""A plugin of SGLang (entry point `sglang.srt.plugins`): lets DFLASH start on a CPU.

A CPU without AMX keeps the intel_amx attention backend, whose two kernels sgl_kernel stands in for.
"""


def _keep_intel_amx(original, view, *a, **k):
    if view.attention_backend == "intel_amx" and view.device == "cpu":
        return {}
    return original(view, *a, **k)


class _CpuDflashPlatform:
    device_name = "cpu"

    def is_out_of_tree(self):
        return True

    def supports_speculative_algorithm(self, algorithm):
        return True

    def supports_speculative_draft_attention_backend(self, algorithm, backend):
        return True

    def get_default_speculative_draft_attention_backend(self, algorithm):
        return "intel_amx"


def _dflash_on_cpu(original, server_args, *a, **k):
    from sglang.srt.arg_groups import speculative_hook as m

    saved, m.current_platform = m.current_platform, _CpuDflashPlatform()
    try:
        return original(server_args, *a, **k)
    finally:
        m.current_platform = saved


def _patch_record_stream():
    import torch

    real = torch.Tensor.record_stream
    torch.Tensor.record_stream = lambda self, s: None if self.device.type == "cpu" else real(self, s)


def _chain_tree_topk(original, self, forward_batch):
    # DFlashVerifyInput is a linear chain (tree_topk == 1) but never ran on this backend upstream.
    si = forward_batch.spec_info
    if si is not None and not hasattr(si, "tree_topk"):
        si.tree_topk = 1
    return original(self, forward_batch)


def _no_table_rope(original, self, *a, **k):
    # table_qk_norm_rope_ is a GPU Triton kernel; False takes the model's own apply_qk_norm + rotary_emb branch.
    original(self, *a, **k)
    self.use_table_qk_norm_rope = False


def register():
    _patch_record_stream()
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    try:
        from sglang.srt.arg_groups.choices import add_draft_attention_backend_choices
    except ImportError:  # 0.5.20
        from sglang.srt.server_args import add_draft_attention_backend_choices
    add_draft_attention_backend_choices(["intel_amx"])
    HookRegistry.register(
        "sglang.srt.arg_groups.overrides._attention_backend_platform_fallbacks",
        _keep_intel_amx,
        HookType.AROUND,
    )
    HookRegistry.register(
        "sglang.srt.arg_groups.speculative_hook._handle_dflash", _dflash_on_cpu, HookType.AROUND
    )
    HookRegistry.register(
        "sglang.srt.layers.attention.intel_amx_backend.IntelAMXAttnBackend._build_extend_metadata",
        _chain_tree_topk,
        HookType.AROUND,
    )
    HookRegistry.register(
        "sglang.srt.models.dflash.DFlashAttention.__init__", _no_table_rope, HookType.AROUND
    )
