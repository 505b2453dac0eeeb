import MartletWire

/// The settings before the first byte of a response.
struct ResponseScene: Sendable {
    /// The method of the request.
    let method: String
    /// The version of the request.
    let version: WireVersion
    /// The limits of the response.
    let limits: WireLimits
    /// Whether the stream ends cleanly.
    let isCleanEnd: Bool

    /// Creates the settings that the first three controls select.
    init(_ input: FuzzInput) {
        switch input[0] {
        case UInt8(ascii: "H"): method = "HEAD"
        case UInt8(ascii: "C"): method = "CONNECT"
        default: method = "GET"
        }
        limits = WireLimits(input, at: 1)
        isCleanEnd = !input.isSet(0, at: 2)
        version = input.isSet(1, at: 2) ? .http10 : .http11
    }
}
