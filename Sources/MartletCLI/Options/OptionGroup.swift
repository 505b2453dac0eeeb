/// The options up to `--next`, with those that hold for the whole.
struct OptionGroup: Sendable {
    /// What holds for this group.
    var transfer = TransferOptions()
    /// What holds for all.
    var global = GlobalOptions()
    /// What only `download` has a use for.
    var download = DownloadWish()
    /// What only `queue` has a use for.
    var queue = QueueWish()
    /// The values of options as they were given, also of those that others replaced later.
    var given: [(option: String, value: String)] = []
}
