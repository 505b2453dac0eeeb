/// How urgent a request is while it waits for a connection.
///
/// Priorities order waiting requests only; a request that has its connection is never disturbed. Requests of one
/// priority are served first come, first served, unless they ask for another ``WaitingOrder``. A waiting request gains
/// one level for every ``PoolLimits/ageingInterval`` it has waited, so a low priority is served later, never never.
///
/// The five levels are those of Foundation's operation queues, which AFNetworking and MKNetworkKit handed on to
/// their users.
public enum RequestPriority: UInt8, Comparable, CaseIterable, Codable, Sendable {
    /// Work nobody waits for: prefetching, telemetry.
    case lowest
    /// Work that may take a while: bulk uploads.
    case low
    /// The default.
    case normal
    /// Work somebody looks at: thumbnails.
    case high
    /// Work everything else waits for: a token refresh.
    case highest

    /// Orders priorities from the least to the most urgent.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}
