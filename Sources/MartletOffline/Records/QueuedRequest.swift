package import MartletCore

/// A stored request: the data that other processes can read.
package struct QueuedRequest: Hashable, Sendable {
    /// The state; `sending` also if the process ended while it was being sent.
    package typealias Stage = OfflineEntry.State

    /// The number of the request in its queue.
    package var id: OfflineID
    package var lane: String
    /// The name given by the caller.
    package var tag: String?
    package var method: String
    /// The URL, without user info and fragment.
    package var url: HTTPURL
    /// The fields without the secret ones.
    package var fields = HTTPFields()
    /// The names of the fields that are not stored.
    package var secretFields: [String] = []
    /// The value of its field `Idempotency-Key`, which is not among ``fields``.
    package var idempotencyKey: String?
    /// The `Content-Type`, unless it is among the fields.
    package var contentType: String?
    /// The body, uncompressed.
    package var body = QueuedBody.none
    /// The compression of the body while it is sent.
    package var compression: BodyCompression?
    /// The time of submission, in milliseconds since 1970.
    package var submitted: Int64
    /// The time of expiry, in milliseconds since 1970.
    package var expires: Int64
    /// The time of the last retry after the expiry, from which ``expires`` counts; `nil` for ``submitted``.
    package var renewed: Int64?
    /// The time of expiry on the clock that counts from the boot, which is never adjusted.
    package var bootDeadline: BootDeadline?
    package var attempts: UInt32 = 0
    /// The stored state of the request.
    package var stage = Stage.waiting

    /// Whether the request may be sent twice: it has a key, or its method is idempotent (RFC 9110 §9.2.2).
    package var isRepeatable: Bool { idempotencyKey != nil || isIdempotent }

    package var isIdempotent: Bool { HTTPRequest.Method(rawValue: method)?.isIdempotent ?? false }
}

/// The body of a stored request.
package enum QueuedBody: Hashable, Sendable {
    /// The request has no body.
    case none
    /// The bytes in the record.
    case inline([UInt8])
    /// A separate file in the queue's directory.
    case own(FileIdentity)
    /// A file of the caller by its absolute path.
    case file(String, FileIdentity)

    /// The fingerprint of a file when the request was submitted.
    package struct FileIdentity: Hashable, Sendable {
        package var byteCount: UInt64
        /// The SHA-256, 32 bytes.
        package var digest: [UInt8]
    }

    package var byteCount: UInt64 {
        switch self {
        case .none: 0
        case .inline(let bytes): UInt64(bytes.count)
        case .own(let mark), .file(_, let mark): mark.byteCount
        }
    }

    /// The number of bytes in the queue's directory, apart from the record.
    var storedByteCount: UInt64 { if case .own(let mark) = self { mark.byteCount } else { 0 } }
}

/// A time on the clock that counts from the boot. It is never adjusted, and valid in all processes until the next boot.
package struct BootDeadline: Hashable, Sendable {
    /// The kernel's identifier of the boot.
    package var boot: String
    /// Milliseconds after the boot.
    package var milliseconds: Int64

    /// The time on the clock of this process.
    package var time: MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(by: .milliseconds(max(0, milliseconds))) }

    /// The identifier of the current boot; `nil` if the kernel does not provide it.
    package static let currentBoot: String? = {
        // The kernel reports the length of this file as 0.
        let reader = try? FileReader(path: "/proc/sys/kernel/random/boot_id")
        guard let bytes = try? reader?.read(at: 0, limit: 256) else { return nil }
        let name = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        return name.isEmpty ? nil : name
    }()
}

extension BootDeadline {
    /// Creates a time; `nil` if the boot has no identifier.
    package init?(_ time: MonotonicTime, boot: String?) {
        guard let boot else { return nil }
        self.init(boot: boot, milliseconds: Int64(time.nanoseconds / 1_000_000))
    }
}

/// The fields that are not written to disk.
struct SecretFields: Sendable {
    private static let always: Set<String> = [
        "authorization", "cookie", "proxy-authorization", "set-cookie", "authentication-info",
        "proxy-authentication-info",
    ]
    private var names: Set<String>

    init(_ declared: Set<HTTPField.Name>) { names = SecretFields.always.union(declared.map(\.canonicalName)) }

    /// Returns these names and others.
    func adding(_ more: [String]) -> SecretFields {
        var all = self
        all.names.formUnion(more.compactMap { HTTPField.Name($0)?.canonicalName })
        return all
    }

    /// Splits fields into those that may be stored and secret ones.
    func stripped(from fields: HTTPFields) -> (kept: HTTPFields, secret: HTTPFields) {
        var (kept, secret) = (HTTPFields(), HTTPFields())
        for field in fields {
            if names.contains(field.name.canonicalName) { secret.append(field) } else { kept.append(field) }
        }
        return (kept, secret)
    }
}

/// The value of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header §2.1): a string of RFC 8941 §3.3.3.
enum OfflineKey {
    /// Returns the value for a request; `nil` for none. A value that the request has takes precedence.
    /// - Parameter option: The key of the request's options. Its text is sent as it is, as without a queue.
    static func text(_ key: OfflineSubmission.Key, _ option: IdempotencyKey? = nil, of request: HTTPRequest) -> String?
    {
        if let own = request.headerFields[.idempotencyKey], !own.isEmpty { return own }
        switch key {
        case .none: return nil
        case .value(let text): return quoted(text)
        case .automatic where option == nil && request.method.isIdempotent: return nil
        case .automatic: return option?.text ?? quoted(random())
        }
    }

    /// Returns a text as a quoted string, unless it is one. Characters that are not allowed become question marks.
    static func quoted(_ text: String) -> String {
        if isQuoted(text) { return text }
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": quoted += "\\\(scalar)"
            case " "..."~": quoted.unicodeScalars.append(scalar)
            default: quoted += "?"
            }
        }
        return quoted + "\""
    }

    private static func isQuoted(_ text: String) -> Bool {
        let quote = UInt8(ascii: "\"")
        let bytes = Array(text.utf8)
        guard bytes.count >= 2, bytes.first == quote, bytes.last == quote else { return false }
        var isEscaped = false
        for byte in bytes[1..<(bytes.count - 1)] {
            switch byte {
            case UInt8(ascii: "\\"): isEscaped.toggle()
            // Quotes must be escaped, and no other character may be.
            case 0x20...0x7e where isEscaped == (byte == quote): isEscaped = false
            default: return false
            }
        }
        return !isEscaped
    }

    /// Returns 128 random bits in hexadecimal.
    private static func random() -> String {
        let digits = String(UInt128.random(in: 0 ... .max), radix: 16)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }
}
