/// How urgent a download is among those that wait.
///
/// Those that wait long rise, so that none waits for ever.
public enum DownloadPriority: Int, Hashable, Sendable, Codable, Comparable, CaseIterable {
    /// Behind the others.
    case low = 0
    /// As most are.
    case normal = 1
    /// Before the others.
    case high = 2

    /// The less urgent one first.
    public static func < (left: DownloadPriority, right: DownloadPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
