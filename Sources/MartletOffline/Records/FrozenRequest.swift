import MartletContent
import MartletURL
import MartletCaching
package import MartletCore
import MartletDiagnostics
import MartletStorage
package import MartletTransport

/// A request that is kept until it is taken: all that is known of it in other processes.
package struct FrozenRequest: Hashable, Sendable {
    /// What is to become of it.
    package enum Stage: Hashable, Sendable {
        /// It is to be sent.
        case waiting
        /// It is being sent, or was when the process ended.
        case sending
        /// It is not sent again by itself.
        case dead(OfflineDeadLetter)
        /// It is not known whether it took effect.
        case uncertain(OfflineDeadLetter)
    }

    /// Its number.
    package var id: OfflineID
    /// The line it stands in.
    package var lane: String
    /// What the caller calls it.
    package var tag: String?
    /// The method.
    package var method: String
    /// Where it goes; without user info and fragment.
    package var url: HTTPURL
    /// Its fields but the secret ones.
    package var fields = HTTPFields()
    /// The names of the fields that are not stored.
    package var secretFields: [String] = []
    /// The value of its field `Idempotency-Key`, which is not among ``fields``.
    package var idempotencyKey: String?
    /// What `Content-Type` says unless the fields do.
    package var contentType: String?
    /// Its body.
    package var body = FrozenBody.none
    /// When it was submitted, in milliseconds since 1970.
    package var submitted: Int64
    /// When it expires, in milliseconds since 1970.
    package var expires: Int64
    /// The same moment on the clock that counts from the start of the computer, which no clock step moves.
    package var bootDeadline: BootDeadline?
    /// How often it was begun to be sent.
    package var attempts: UInt32 = 0
    /// What is to become of it.
    package var stage = Stage.waiting

    /// Whether sending it twice does no harm: the method is idempotent (RFC 9110 §9.2.2), or the server knows a repetition
    /// by its key.
    package var isRepeatable: Bool { idempotencyKey != nil || isIdempotent }

    /// Whether its effect is the same however often it is carried out.
    package var isIdempotent: Bool { HTTPRequest.Method(rawValue: method)?.isIdempotent ?? false }
}

/// The body of a request that is kept.
package enum FrozenBody: Hashable, Sendable {
    /// There is none.
    case none
    /// Its bytes.
    case inline([UInt8])
    /// A file of the queue's own, beside the record.
    case own(FileMark)
    /// A file of the caller's, by its absolute path.
    case file(String, FileMark)

    /// What a file was when the request was submitted.
    package struct FileMark: Hashable, Sendable {
        /// Its length.
        package var byteCount: UInt64
        /// Its SHA-256, 32 bytes.
        package var digest: [UInt8]
    }

    /// How many bytes it has.
    package var byteCount: UInt64 {
        switch self {
        case .none: 0
        case .inline(let bytes): UInt64(bytes.count)
        case .own(let mark), .file(_, let mark): mark.byteCount
        }
    }

    /// How many bytes of it are in the queue's directory, beside the record.
    var storedByteCount: UInt64 { if case .own(let mark) = self { mark.byteCount } else { 0 } }
}

/// A moment on the clock that counts from the start of the computer. No clock step moves it, and it holds in all processes
/// until the computer is started again.
package struct BootDeadline: Hashable, Sendable {
    /// The start of the computer that it counts from, as the kernel names it.
    package var boot: String
    /// Milliseconds after that start.
    package var milliseconds: Int64

    /// The moment on the clock of this process.
    package var time: MonotonicTime {
        MonotonicTime(nanoseconds: 0).advanced(by: .milliseconds(max(0, milliseconds)))
    }

    /// The name of this start of the computer; `nil` where the kernel does not tell it.
    package static let currentBoot: String? = {
        let path = "/proc/sys/kernel/random/boot_id"
        // Its length is told as 0.
        guard let bytes = try? FileReader(path: path).read(at: 0, limit: 256) else { return nil }
        let name = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
        return name.isEmpty ? nil : name
    }()
}

extension BootDeadline {
    /// A moment; `nil` where the start of the computer has no name.
    package init?(_ time: MonotonicTime, boot: String?) {
        guard let boot else { return nil }
        self.init(boot: boot, milliseconds: Int64(time.nanoseconds / 1_000_000))
    }
}

/// Which fields are not written to disk.
struct SecretFields: Sendable {
    private static let always: Set<String> = [
        "authorization", "cookie", "proxy-authorization", "set-cookie", "authentication-info",
        "proxy-authentication-info",
    ]
    private var names: Set<String>

    init(_ declared: Set<HTTPField.Name>) { names = SecretFields.always.union(declared.map(\.canonicalName)) }

    /// These, and more by their names.
    func adding(_ more: [String]) -> SecretFields {
        var all = self
        all.names.formUnion(more.compactMap { HTTPField.Name($0)?.canonicalName })
        return all
    }

    /// Fields without the secret ones, and those.
    func stripped(from fields: HTTPFields) -> (kept: HTTPFields, secret: HTTPFields) {
        var kept = HTTPFields()
        var secret = HTTPFields()
        for field in fields {
            if names.contains(field.name.canonicalName) { secret.append(field) } else { kept.append(field) }
        }
        return (kept, secret)
    }
}

/// The value of `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header §2.1): a string of RFC 8941 §3.3.3.
enum OfflineKey {
    /// The value for a request; `nil` for none. One that the request has stays as it is.
    static func text(_ key: OfflineSubmission.Key, of request: HTTPRequest) -> String? {
        if let own = request.headerFields[.idempotencyKey], !own.isEmpty { return own }
        switch key {
        case .none: return nil
        case .value(let text): return quoted(text)
        case .automatic: return request.method.isIdempotent ? nil : quoted(random())
        }
    }

    /// A text as a quoted string, unless it is one. What cannot stand in one becomes a question mark.
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
        let bytes = Array(text.utf8)
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else {
            return false
        }
        var isEscaped = false
        for byte in bytes[1..<(bytes.count - 1)] {
            switch byte {
            case UInt8(ascii: "\\"): isEscaped.toggle()
            case UInt8(ascii: "\""):
                guard isEscaped else { return false }
                isEscaped = false
            case 0x20...0x7e:
                // Only these two are escaped.
                guard !isEscaped else { return false }
            default: return false
            }
        }
        return !isEscaped
    }

    /// 128 random bits in hexadecimal.
    private static func random() -> String {
        let digits = String(UInt128.random(in: 0 ... .max), radix: 16)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }
}
