/// What kind of traffic packets are marked as, by a code point of Differentiated Services (RFC 2474), for networks that heed
/// it (`IP_TOS`, `IPV6_TCLASS`).
///
/// Many networks ignore or erase the mark. It holds for what is sent from this machine; what a server sends, it marks itself.
public struct ServiceClass: Hashable, Sendable {
    /// The code point, 0–63.
    public let codePoint: Int32

    private init(_ codePoint: Int32) {
        self.codePoint = codePoint
    }

    /// As any other traffic: the default of the internet.
    public static let bestEffort = ServiceClass(0)
    /// What nobody waits for, to be sent when there is room: lower effort (LE, RFC 8622).
    public static let background = ServiceClass(1)
    /// What somebody waits for: low-latency data (AF21, RFC 4594 §4.7).
    public static let responsiveData = ServiceClass(18)
    /// Streamed video (AF31, RFC 4594 §4.5).
    public static let video = ServiceClass(26)
    /// Speech (EF, RFC 3246).
    public static let voice = ServiceClass(46)

    /// A code point of one's own; `nil` unless it is 0–63.
    public static func codePoint(_ number: Int) -> ServiceClass? {
        (0...63).contains(number) ? ServiceClass(Int32(number)) : nil
    }
}

extension ServiceClass: Codable {
    /// Reads a code point.
    /// - Throws: `DecodingError.dataCorrupted` unless it is 0–63.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let number = try container.decode(Int.self)
        guard let found = ServiceClass.codePoint(number) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "\(number) is no code point: they are 0–63")
        }
        self = found
    }

    /// Writes the code point.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(codePoint)
    }
}
