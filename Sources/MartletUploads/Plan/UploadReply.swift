import MartletCore

/// The parts of a response, also an interim one, that an upload depends on.
struct UploadReply: Hashable, Sendable {
    var status: Int
    /// `Upload-Offset`: the number of bytes that the server has; `nil` without a valid field.
    var offset: UInt64?
    /// `Upload-Length`: the length that the server expects.
    var length: UInt64?
    /// `Upload-Complete`: whether the server has the whole file; `nil` without a valid field.
    var isComplete: Bool?
    /// The URL in `Location`; `nil` without a valid one, and for one that leaves https.
    var location: HTTPURL?
    /// `Upload-Limit`.
    var limits = Limits()
    /// The delay in `Retry-After`.
    var retryAfter: Duration?
    /// The protocol that a response to `OPTIONS` announces; ``UploadProtocol/plain`` if it announces none.
    var announced = UploadProtocol.plain

    /// The limits of a server, in bytes.
    struct Limits: Hashable, Sendable {
        var maximumSize: UInt64?
        var maximumAppend: UInt64?
        var minimumAppend: UInt64?

        /// Parses `Upload-Limit`. Unknown members are ignored. If a known one has an invalid value, all are.
        init(_ field: String? = nil) {
            var limits: [Substring: UInt64] = [:]
            for member in field?.split(separator: ",") ?? [] {
                let pair = UploadReply.item(member).split(separator: "=", maxSplits: 1)
                guard pair.count == 2, ["max-size", "max-append-size", "min-append-size"].contains(pair[0]) else {
                    continue
                }
                guard let number = UploadReply.number(pair[1]) else { return }
                limits[pair[0]] = number
            }
            maximumSize = limits["max-size"]
            (maximumAppend, minimumAppend) = (limits["max-append-size"], limits["min-append-size"])
        }
    }

    init(status: Int) { self.status = status }

    /// Reads a response.
    /// - Parameter url: The URL of the response, which `Location` is relative to.
    init(status: Int, fields: HTTPFields, url: HTTPURL, retryAfter: Duration? = nil) {
        self.status = status
        self.retryAfter = retryAfter
        offset = UploadReply.number(fields["Upload-Offset"])
        length = UploadReply.number(fields["Upload-Length"])
        isComplete = fields["Upload-Complete"].flatMap { ["?0": false, "?1": true][UploadReply.item($0[...])] }
        limits = Limits(fields["Upload-Limit"])
        if let text = fields["Location"], let location = try? url.resolving(text),
            location.scheme == .https || url.scheme == .http
        {
            self.location = location.withoutFragment.withoutUserInfo
        }
        if UploadReply.list(fields["Accept-Patch"]).contains("application/partial-upload") {
            announced = .ietf
        } else if UploadReply.list(fields["Tus-Version"]).contains("1.0.0") {
            announced = .tus
        }
    }

    var isSuccess: Bool { (200..<300).contains(status) }

    /// Whether the request may succeed later (RFC 9110 §15.5.9, §15.6; 423 is the lock of a tus server).
    var isTransient: Bool { [408, 423, 425, 429, 500, 502, 503, 504].contains(status) }

    /// A value without its parameters and the white space around it (RFC 9651 §3.3).
    private static func item(_ text: Substring) -> String {
        let start = text.prefix { $0 != ";" }.drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }

    /// The lower-case members of a list, without parameters.
    private static func list(_ field: String?) -> [String] {
        field?.split(separator: ",").map { item($0).lowercased() } ?? []
    }

    /// A number of digits only; `nil` for any other value.
    private static func number(_ text: (some StringProtocol)?) -> UInt64? {
        guard let text else { return nil }
        let digits = item(Substring(text))
        return digits.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(digits) : nil
    }
}
