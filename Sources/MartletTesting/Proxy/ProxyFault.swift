/// What a fault proxy does to a response.
public enum ProxyFault: String, Hashable, Sendable, CaseIterable, Codable {
    /// Resets both connections behind some of its bytes.
    case reset
    /// Sends some of its bytes and then nothing, for as long as the client stays.
    case stall
    /// Ends the connection in order behind some of its bytes.
    case truncated
    /// Sends all of it, a little at a time.
    case slow
    /// Sends random bytes in its place, and ends the connection.
    case garbage
}
