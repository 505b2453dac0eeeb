/// What there is to show of all downloads together.
struct DownloadTotal: Hashable, Sendable {
    /// How many there are.
    var fileCount = 0
    /// How many are complete.
    var finishedCount = 0
    /// How many have failed.
    var failedCount = 0
    /// Their bytes, rate and time; its name is not shown.
    var row = DownloadRow(name: "")
}
