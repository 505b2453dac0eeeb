/// What a fault proxy has done so far.
public struct FaultCounts: Hashable, Sendable, CustomStringConvertible {
    /// Connections accepted.
    public internal(set) var connections = 0
    /// Connections open now.
    public internal(set) var openConnections = 0
    /// Connections whose origin could not be reached; they were reset.
    public internal(set) var unreachable = 0
    /// Responses that began to pass, whole or not. A response is what the origin sends until the client speaks again.
    public internal(set) var responses = 0
    /// How often each fault was made; those that were not are missing.
    public internal(set) var faults: [ProxyFault: Int] = [:]

    /// All faults together.
    public var faultCount: Int { faults.values.reduce(0, +) }

    /// One line: `1200 responses on 70 connections: 12 reset, 9 stall, 14 truncated, 61 slow, 10 garbage`.
    public var description: String {
        let made = ProxyFault.allCases.map { "\(faults[$0, default: 0]) \($0.rawValue)" }
        return "\(responses) responses on \(connections) connections: \(made.joined(separator: ", "))"
    }
}
