public import MartletCore
import Synchronization

/// The reason why a response does not satisfy a ``DigestVerificationPolicy``.
public enum DigestError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The content has another digest than a field of the response, such as `Content-Digest`.
    case mismatch(field: String, algorithm: DigestAlgorithm, expected: [UInt8], received: [UInt8])
    /// A digest is required, but there is none that can be verified.
    case missing

    /// The field, the hash function and both digests in the form of the field.
    public var description: String {
        switch self {
        case .mismatch(let field, let algorithm, let expected, let received):
            "the body does not match the \(field) of the response: expected \(DigestField.member(algorithm, expected)), received \(DigestField.member(algorithm, received))"
        case .missing:
            "the response has no digest that can be verified (Content-Digest or Repr-Digest with sha-256 or sha-512), but one is required"
        }
    }
}

/// The rule that decides which fields of a response have digests of its content.
enum DigestRule {
    /// Returns the names of the fields that the content is compared with.
    ///
    /// `Repr-Digest` is of the selected representation. That is not the content of a part (206), a difference (226) or
    /// an error about ranges (416), and may not be that of a method other than GET with `Content-Location` (RFC 9530
    /// §3.1).
    static func fields(method: String, status: Int, hasContentLocation: Bool) -> [String] {
        let isRepresentation = ![206, 226, 304, 416].contains(status) && (method == "GET" || !hasContentLocation)
        return isRepresentation ? ["Content-Digest", "Repr-Digest"] : ["Content-Digest"]
    }
}

/// A digest that the content must have.
struct ExpectedDigest {
    let field: String
    let algorithm: DigestAlgorithm
    let bytes: [UInt8]

    /// Returns the digests of fields, the strongest function of each field first.
    static func all(of names: [String], in fields: FieldBlock) -> [ExpectedDigest] {
        names.flatMap { name in
            let digests = DigestField(fields.rawValues(of: name)).digests
            return DigestAlgorithm.allCases.compactMap { algorithm in
                digests[algorithm].map { ExpectedDigest(field: name, algorithm: algorithm, bytes: $0) }
            }
        }
    }
}

/// Several digests of the same bytes, computed by one task at a time.
struct DigestComputation {
    private let digests: [(algorithm: DigestAlgorithm, digest: MessageDigest)]

    /// Creates the digests of no bytes.
    /// - Throws: An error if OpenSSL lacks an algorithm.
    init(_ algorithms: [DigestAlgorithm]) throws(MessageDigestError) {
        digests = try algorithms.map { algorithm throws(MessageDigestError) in
            (algorithm, try MessageDigest(algorithm == .sha512 ? .sha512 : .sha256))
        }
    }

    func add(_ bytes: Span<UInt8>) { for (_, digest) in digests { digest.update(bytes) } }

    /// Returns the digests. Call it once.
    func finish() throws(MessageDigestError) -> [(algorithm: DigestAlgorithm, bytes: [UInt8])] {
        try digests.map { entry throws(MessageDigestError) in (entry.algorithm, try entry.digest.finish()) }
    }
}

/// A verifier of the content of one response.
final class DigestVerifier: ContentVerifier {
    private enum State {
        /// Nothing is verified: the response has not begun, or has no content or digests.
        case idle
        case receiving(DigestComputation, names: [String], expected: [ExpectedDigest], isRequired: Bool)
        case ended(ContentRejection?)
    }

    private let method: String
    private let isRequired: Bool
    /// The lock on the state, used by the reader of the body.
    private let state = Mutex(State.idle)

    init(method: String, isRequired: Bool) { (self.method, self.isRequired) = (method, isRequired) }

    func begin(_ head: ResponseHead, _ framing: BodyFraming) -> ContentRejection? {
        // Without content (HEAD, 204, 304), the fields describe the response to another request.
        if framing == .none { return nil }
        let names = DigestRule.fields(
            method: method, status: head.status, hasContentLocation: head.fields.contains("Content-Location"))
        let expected = ExpectedDigest.all(of: names, in: head.fields)
        // A response with a length of 0 has no content, such as a 201; a GET without content is suspicious.
        let isEmpty = framing == .length(0) && method != "GET"
        let isRequired = isRequired && (200..<300).contains(head.status) && !isEmpty
        let mayFollow = framing == .chunked
        if expected.isEmpty, !mayFollow { return isRequired ? DigestError.missing : nil }
        let algorithms = DigestAlgorithm.allCases.filter { algorithm in
            mayFollow || expected.contains { $0.algorithm == algorithm }
        }
        let failure = state.withLock { state -> ContentRejection? in
            do throws(MessageDigestError) {
                state = .receiving(
                    try DigestComputation(algorithms), names: names, expected: expected, isRequired: isRequired)
                return nil
            } catch { return error }
        }
        // An empty body may never be read.
        return failure ?? (framing == .length(0) ? finish(trailers: nil) : nil)
    }

    func add(_ bytes: Span<UInt8>) {
        state.withLock { state in
            if case .receiving(let computation, _, _, _) = state { computation.add(bytes) }
        }
    }

    func finish(trailers: FieldBlock?) -> ContentRejection? {
        state.withLock { state -> ContentRejection? in
            switch state {
            case .idle: return nil
            case .ended(let outcome): return outcome
            case .receiving(let computation, let names, var expected, let isRequired):
                expected += trailers.map { ExpectedDigest.all(of: names, in: $0) } ?? []
                let outcome = DigestVerifier.outcome(of: computation, expected, isRequired: isRequired)
                state = .ended(outcome)
                return outcome
            }
        }
    }

    private static func outcome(of computation: DigestComputation, _ expected: [ExpectedDigest], isRequired: Bool)
        -> ContentRejection?
    {
        if expected.isEmpty { return isRequired ? DigestError.missing : nil }
        do throws(MessageDigestError) {
            let received = try computation.finish()
            for digest in expected {
                if let other = received.first(where: { $0.algorithm == digest.algorithm && $0.bytes != digest.bytes }) {
                    return DigestError.mismatch(
                        field: digest.field, algorithm: digest.algorithm, expected: digest.bytes, received: other.bytes)
                }
            }
            return nil
        } catch { return error }
    }
}
