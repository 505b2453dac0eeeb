import MartletWire

/// A content coding that Martlet can decode (RFC 9110 §8.4.1).
package enum ContentCoding: String, Hashable, Sendable, CaseIterable {
    /// gzip (RFC 1952), one or more members; `x-gzip` is the same.
    case gzip
    /// zlib (RFC 1950), or raw deflate (RFC 1951) as many servers send it.
    case deflate
    #if Brotli
        /// Brotli (RFC 7932). Requires the package trait `Brotli`.
        case brotli = "br"
    #endif
    #if Zstandard
        /// Zstandard (RFC 8878) with windows of at most 8 MiB (RFC 9659). Requires the package trait `Zstandard`.
        case zstandard = "zstd"
    #endif

    /// Creates the coding with a name, in any case; `nil` for an unknown coding.
    package init?(name: some StringProtocol) {
        let name = name.lowercased()
        self.init(rawValue: name == "x-gzip" ? "gzip" : name)
    }

    /// The value of `Accept-Encoding`: all codings that can be decoded (RFC 9110 §12.5.3).
    package static let acceptedNames = allCases.map(\.rawValue).joined(separator: ", ")
}

/// The codings of a body in the order of decoding, from the values of `Content-Encoding` (RFC 9110 §8.4).
package struct ContentCodingPlan: Hashable, Sendable {
    /// The handling of a body with an unknown coding.
    package enum UnknownCoding: Hashable, Sendable {
        /// The body is returned as received, with all its codings, and `Content-Encoding` remains correct.
        case passedThrough
        /// The body is rejected.
        case rejected
    }

    /// The codings in the order of decoding: the last one listed first. Empty if there is nothing to decode.
    package let codings: [ContentCoding]

    /// Creates a plan for the values of all `Content-Encoding` fields, in the order received and in linear time.
    /// `identity` and empty list members are skipped.
    /// - Throws: ``ContentDecodingError/tooManyCodings(limit:)``, ``ContentDecodingError/unknownCoding(_:)``.
    package init(fieldValues: [String], unknown: UnknownCoding = .passedThrough, limits: DecompressionLimits = .init())
        throws(ContentDecodingError)
    {
        var codings: [ContentCoding] = []
        var firstUnknown: String?
        var count = 0
        for value in fieldValues {
            for member in Array(value.utf8).split(separator: UInt8(ascii: ",")) {
                let trimmed = ByteClass.trimmed(member)
                guard !trimmed.isEmpty else { continue }
                count += 1
                guard count <= limits.maximumCodings else { throw .tooManyCodings(limit: limits.maximumCodings) }
                let name = String(decoding: trimmed, as: UTF8.self)
                if let coding = ContentCoding(name: name) {
                    codings.append(coding)
                } else if name.lowercased() != "identity" {
                    firstUnknown = firstUnknown ?? String(name.prefix(40))
                }
            }
        }
        if let firstUnknown, unknown == .rejected { throw .unknownCoding(firstUnknown) }
        self.codings = firstUnknown == nil ? codings.reversed() : []
    }
}

/// A body that could not be decoded. All errors are caused by the peer, except ``outOfMemory``.
package enum ContentDecodingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The body ended before its compressed data was complete, even if `Content-Length` was correct.
    case truncated(ContentCoding)
    /// The first bytes are not those of the coding.
    case invalidHeader(ContentCoding)
    /// The compressed data is inconsistent or exceeds a limit; the reason is mostly the library's text.
    case corrupt(ContentCoding, reason: String)
    /// The checksum of the decoded data differs from the stated one.
    case checksumMismatch(ContentCoding)
    /// The length of the decoded data differs from the length that a gzip member states.
    case lengthMismatch(ContentCoding)
    /// The bytes after the end of the data are neither a gzip member nor zero padding.
    case trailingData(ContentCoding)
    /// `Content-Encoding` names an unknown coding, and such bodies are rejected.
    case unknownCoding(String)
    /// `Content-Encoding` lists more codings than allowed.
    case tooManyCodings(limit: Int)
    /// The decoded body exceeds ``DecompressionLimits/maximumByteCount``.
    case tooLarge(limit: Int)
    /// The body expands by more than ``DecompressionLimits/maximumRatio``.
    case ratioExceeded(limit: Int)
    /// The decoder could not allocate its memory.
    case outOfMemory

    /// Whether the body itself is the cause, so that every reader would reject it; `false` for the limits of this
    /// reader and for a lack of memory.
    package var appliesToBody: Bool {
        switch self {
        case .truncated, .invalidHeader, .corrupt, .checksumMismatch, .lengthMismatch, .trailingData, .ratioExceeded:
            true
        case .unknownCoding, .tooManyCodings, .tooLarge, .outOfMemory: false
        }
    }

    /// The error as a sentence without a full stop.
    package var description: String {
        switch self {
        case .truncated(let coding): "the \(coding) body ends too early"
        case .invalidHeader(let coding): "the body does not begin with a valid \(coding) header"
        case .corrupt(let coding, let reason): "the \(coding) body is corrupt: \(reason)"
        case .checksumMismatch(let coding): "the \(coding) body does not match its checksum"
        case .lengthMismatch(let coding): "the \(coding) body does not match its stated length"
        case .trailingData(let coding): "bytes follow the end of the \(coding) body"
        case .unknownCoding(let name): "the content coding \(name) is unknown"
        case .tooManyCodings(let limit): "the body has more than \(limit) content codings"
        case .tooLarge(let limit): "the decoded body is larger than \(limit) bytes"
        case .ratioExceeded(let limit): "the body expands by more than \(limit) to 1"
        case .outOfMemory: "not enough memory to decode the body"
        }
    }
}

/// Limits on the expansion of a compressed body. A decompression bomb turns kilobytes on the wire into gigabytes in
/// memory or on disk. The limits do not apply to bodies without a content coding.
public struct DecompressionLimits: Hashable, Sendable, Codable {
    /// The maximum size of a decoded body in bytes; `nil` (the default) for no separate limit. Values below 0 count as
    /// 0. It stops bombs with a low ratio and a large size.
    public var maximumByteCount: Int?
    /// The maximum number of decoded bytes for each received byte; 100 by default.
    ///
    /// It applies above ``ratioThreshold``. The output of each coding is compared with the bytes received. One layer of
    /// deflate cannot exceed a ratio of about 1,030, so larger values disable the limit for it; Brotli and Zstandard
    /// have no such bound. Values below 1 count as 1.
    public var maximumRatio: Int
    /// The number of decoded bytes below which the ratio is ignored, because small bodies of zeros or blanks are
    /// legitimate; 10 MiB by default. Values below 0 count as 0.
    public var ratioThreshold: Int
    /// The maximum number of codings in `Content-Encoding`, `identity` included; 5 by default, as in curl. It stops
    /// nested bombs, whose layers multiply the work.
    public var maximumCodings: Int

    /// Creates limits; each has a default.
    public init(
        maximumByteCount: Int? = nil, maximumRatio: Int = 100, ratioThreshold: Int = 10 << 20, maximumCodings: Int = 5
    ) {
        (self.maximumByteCount, self.maximumRatio) = (maximumByteCount, maximumRatio)
        (self.ratioThreshold, self.maximumCodings) = (ratioThreshold, maximumCodings)
    }

    /// Decodes limits. Missing ones have their default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        maximumByteCount = try container.decodeIfPresent(Int.self, forKey: .maximumByteCount)
        maximumRatio = try container.decodeIfPresent(Int.self, forKey: .maximumRatio) ?? maximumRatio
        ratioThreshold = try container.decodeIfPresent(Int.self, forKey: .ratioThreshold) ?? ratioThreshold
        maximumCodings = try container.decodeIfPresent(Int.self, forKey: .maximumCodings) ?? maximumCodings
    }

    /// Whether the ratio of output to input exceeds the limits.
    package func isExceeded(output: Int, input: Int) -> Bool {
        guard output > max(ratioThreshold, 0) else { return false }
        let (allowed, overflow) = input.multipliedReportingOverflow(by: max(maximumRatio, 1))
        return !overflow && output > allowed
    }
}

/// A decoder of one content coding that works incrementally, and never produces more bytes than fit into the given
/// buffer. One consumer owns it. Each conforming type wraps one library; ``step(_:endOfInput:into:)`` is the same for
/// all. An empty body decodes to an empty one, as in curl and Go, because servers label empty bodies with a coding.
protocol CodingDecoder: AnyObject {
    var coding: ContentCoding { get }
    /// The state of the decoder; ``CodingState/outside`` at first.
    var state: CodingState { get set }

    /// Consumes input outside compressed data. The input is not empty. It may change the state.
    /// - Returns: The number of bytes consumed.
    func takeOutside(_ input: UnsafeRawBufferPointer) -> Int

    /// The error if input ends outside compressed data; `nil` if it may end there.
    var errorAtEnd: ContentDecodingError? { get }

    /// Runs the library once, on compressed data. It may change the state.
    /// - Returns: Whether the decoder needs more input to continue.
    func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ step: inout CodingStep)
        -> Bool

    /// Releases the library's memory.
    func close()
}

/// The state of a decoder.
enum CodingState {
    /// Before the first byte of compressed data, or after the last.
    case outside
    /// Within compressed data.
    case inside
    /// The input has ended at a valid position.
    case finished
    /// An error was found; every call throws it again.
    case failed(ContentDecodingError)
}

/// The result of one call of a decoder.
struct CodingStep {
    /// The number of bytes consumed from the input.
    var consumed = 0
    /// The number of bytes written to the output.
    var produced = 0
    /// Whether the input has ended and all output was written.
    var isFinished = false
}

extension CodingDecoder {
    /// Decodes as much of the input as fits into the output, under the rules of
    /// ``ContentDecoder/decode(_:endOfInput:upTo:)``. An empty output has no effect.
    func step(_ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer)
        throws(ContentDecodingError) -> CodingStep
    {
        var step = CodingStep()
        while unsafe !output.isEmpty {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: input[step.consumed...])
            switch state {
            case .failed(let error):
                // Bytes already written in this call are returned before the error.
                if step.produced == 0 { throw error }
                return step
            case .finished:
                step.isFinished = true
                return step
            case .outside:
                if unsafe !rest.isEmpty {
                    step.consumed += unsafe takeOutside(rest)
                } else {
                    guard endOfInput else { return step }
                    if let errorAtEnd { fail(errorAtEnd) } else { state = .finished }
                    close()
                }
            case .inside:
                guard step.produced < output.count else { return step }
                let room = unsafe UnsafeMutableRawBufferPointer(rebasing: output[step.produced...])
                guard unsafe decode(rest, into: room, &step) else { continue }
                guard endOfInput else { return step }
                fail(.truncated(coding))
            }
        }
        return step
    }

    var errorAtEnd: ContentDecodingError? { nil }

    /// Whether the next step throws an error.
    var hasFailed: Bool { if case .failed = state { true } else { false } }

    func fail(_ error: ContentDecodingError) {
        state = .failed(error)
        close()
    }
}

extension ContentCoding {
    /// Returns a decoder for one body in this coding.
    func makeDecoder() -> any CodingDecoder {
        switch self {
        case .gzip, .deflate: return Inflater(self)
        #if Brotli
            case .brotli: return BrotliDecoder()
        #endif
        #if Zstandard
            case .zstandard: return ZstandardDecoder()
        #endif
        }
    }
}
