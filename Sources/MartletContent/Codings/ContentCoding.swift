/// A content coding Martlet can undo (RFC 9110 §8.4.1).
package enum ContentCoding: String, Hashable, Sendable, CaseIterable {
    /// RFC 1952, one or more members; `x-gzip` is the same.
    case gzip
    /// RFC 1950 (zlib), or RFC 1951 alone as many servers send it.
    case deflate
    #if Brotli
        /// RFC 7932. There with the package trait `Brotli`.
        case brotli = "br"
    #endif
    #if Zstandard
        /// RFC 8878, one or more frames, whose windows are of 8 MiB at most (RFC 9659). There with the package trait
        /// `Zstandard`.
        case zstandard = "zstd"
    #endif

    /// The coding of a name, in any case; nil when Martlet does not know it.
    package init?(name: some StringProtocol) {
        switch name.lowercased() {
        case "gzip", "x-gzip": self = .gzip
        case "deflate": self = .deflate
        #if Brotli
            case "br": self = .brotli
        #endif
        #if Zstandard
            case "zstd": self = .zstandard
        #endif
        default: return nil
        }
    }

    /// What `Accept-Encoding` says: all codings that can be undone (RFC 9110 §12.5.3).
    package static let acceptedNames = allCases.map(\.rawValue).joined(separator: ", ")
}

/// What to undo, and in which order, given `Content-Encoding` (RFC 9110 §8.4).
package struct ContentCodingPlan: Hashable, Sendable {
    /// What becomes of a body with a coding Martlet does not know.
    package enum UnknownCoding: Hashable, Sendable {
        /// The body is handed over as it came, all its codings in place, and `Content-Encoding` stays true.
        case passedThrough
        /// The body is refused.
        case refused
    }

    /// The codings in the order they are undone: the last one listed first. Empty when there is nothing to
    /// do.
    package let codings: [ContentCoding]

    /// Whether codings were named that stay in place because one of them is unknown.
    package let isPassedThrough: Bool

    /// Plans for the values of all `Content-Encoding` fields, in the order they came.
    ///
    /// `identity` and empty list members do nothing. Takes time linear in the values.
    ///
    /// - Throws: ``ContentDecodingError/tooManyCodings(limit:)``, ``ContentDecodingError/unknownCoding(_:)``.
    package init(
        fieldValues: [String], unknown: UnknownCoding = .passedThrough, limits: DecompressionLimits = .init()
    ) throws(ContentDecodingError) {
        var codings: [ContentCoding] = []
        var firstUnknown: String?
        var count = 0
        for value in fieldValues {
            for member in value.utf8.split(separator: UInt8(ascii: ",")) {
                let name = member.drop(while: ContentCodingPlan.isBlank)
                guard let end = name.lastIndex(where: { !ContentCodingPlan.isBlank($0) }) else { continue }
                let trimmed = Substring(name[...end])
                count += 1
                guard count <= limits.maximumCodings else {
                    throw .tooManyCodings(limit: limits.maximumCodings)
                }
                // No coding has a name of that length: it is not worth a copy.
                let short = trimmed.utf8.count <= 40 ? String(trimmed) : nil
                if let coding = short.flatMap({ ContentCoding(name: $0) }) {
                    codings.append(coding)
                } else if short?.lowercased() != "identity" {
                    firstUnknown = firstUnknown ?? String(trimmed.prefix(40))
                }
            }
        }
        if let firstUnknown, unknown == .refused { throw .unknownCoding(firstUnknown) }
        self.codings = firstUnknown == nil ? codings.reversed() : []
        isPassedThrough = firstUnknown != nil
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}

/// Why a body could not be decoded. All of them are the peer's doing except ``outOfMemory``.
package enum ContentDecodingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The body ended before its coding did, whatever Content-Length said.
    case truncated(ContentCoding)
    /// The first bytes are not those of the coding.
    case invalidHeader(ContentCoding)
    /// The compressed data contradicts itself, or asks for more than it may; mostly the decoder's own words.
    case corrupt(ContentCoding, reason: String)
    /// The data decoded, but its checksum differs.
    case checksumMismatch(ContentCoding)
    /// The data decoded, but a gzip member states another length.
    case lengthMismatch(ContentCoding)
    /// Bytes follow the end of the data that are neither a gzip member nor zero padding.
    case trailingData(ContentCoding)
    /// `Content-Encoding` names a coding Martlet does not know, and such bodies are refused.
    case unknownCoding(String)
    /// `Content-Encoding` lists more codings than allowed.
    case tooManyCodings(limit: Int)
    /// The decoded body is larger than ``DecompressionLimits/maximumByteCount``.
    case tooLarge(limit: Int)
    /// The body expands by more than ``DecompressionLimits/maximumRatio``.
    case ratioExceeded(limit: Int)
    /// The decoder could not get its memory.
    case outOfMemory

    /// Whether it lies in the body as it is, a bomb included, so that it makes no sense to whoever reads it: not in how large
    /// a body this reader wants, nor in this process.
    package var isOfBody: Bool {
        switch self {
        case .truncated, .invalidHeader, .corrupt, .checksumMismatch, .lengthMismatch, .trailingData,
            .ratioExceeded:
            true
        case .unknownCoding, .tooManyCodings, .tooLarge, .outOfMemory: false
        }
    }

    /// What happened, as a sentence without a full stop.
    package var description: String {
        switch self {
        case .truncated(let coding): "the \(coding) body ends too early"
        case .invalidHeader(let coding): "the body does not begin like \(coding)"
        case .corrupt(let coding, let reason): "the \(coding) body is corrupt: \(reason)"
        case .checksumMismatch(let coding): "the \(coding) body does not match its checksum"
        case .lengthMismatch(let coding): "the \(coding) body does not match its stated length"
        case .trailingData(let coding): "bytes follow the end of the \(coding) body"
        case .unknownCoding(let name): "the content coding \(name) is unknown"
        case .tooManyCodings(let limit): "the body has more than \(limit) content codings"
        case .tooLarge(let limit): "the decoded body is larger than \(limit) bytes"
        case .ratioExceeded(let limit): "the body expands by more than \(limit) to 1"
        case .outOfMemory: "there is no memory to decode the body"
        }
    }
}

/// How far a compressed body may expand before it counts as an attack.
///
/// A decompression bomb turns kilobytes on the wire into gigabytes in memory or on disk. These limits hold
/// for what is decoded; bodies without a content coding are not touched by them.
public struct DecompressionLimits: Hashable, Sendable, Codable {
    /// The most bytes a body may have once decoded; default nil, no limit of its own.
    ///
    /// Values below 0 count as 0. It stops bombs whose ratio is modest but whose size is not.
    public var maximumByteCount: Int?

    /// How many bytes may come out for each byte that went in; default 100.
    ///
    /// Holds only for output above ``ratioThreshold``, and for each coding of a nested body by itself,
    /// against the bytes received. Deflate cannot exceed about 1,030 in one layer, so larger values turn the
    /// limit off for it; Brotli and Zstandard have no such bound. Values below 1 count as 1.
    public var maximumRatio: Int

    /// Bytes of output below which the ratio does not matter; default 10 MiB.
    ///
    /// Small bodies of zeros or blanks are legitimate and harmless. Values below 0 count as 0.
    public var ratioThreshold: Int

    /// How many codings `Content-Encoding` may list, `identity` included; default 5, as in curl.
    ///
    /// It stops bombs inside bombs, each layer multiplying the work.
    public var maximumCodings: Int

    /// Limits; every one has its default.
    public init(
        maximumByteCount: Int? = nil, maximumRatio: Int = 100, ratioThreshold: Int = 10 << 20,
        maximumCodings: Int = 5
    ) {
        self.maximumByteCount = maximumByteCount
        self.maximumRatio = maximumRatio
        self.ratioThreshold = ratioThreshold
        self.maximumCodings = maximumCodings
    }

    /// Whether so much output for so much input is a bomb.
    func isExceeded(output: Int, input: Int) -> Bool {
        guard output > max(ratioThreshold, 0) else { return false }
        let (allowed, overflow) = input.multipliedReportingOverflow(by: max(maximumRatio, 1))
        return !overflow && output > allowed
    }
}

/// Undoes one content coding, piece by piece, and never produces more than the buffer it is given. One consumer owns it.
///
/// A coding brings what is its library's; ``step(_:endOfInput:into:)`` is the same for all. A body of no bytes at all decodes
/// to none, as in curl and Go: servers label empty bodies by habit.
protocol CodingDecoder: AnyObject {
    var coding: ContentCoding { get }
    /// The present state: ``CodingState/outside`` at first.
    var state: CodingState { get set }

    /// Takes bytes outside compressed data, of which there is one at least. It may change the state.
    /// - Returns: The number of bytes taken.
    func takeOutside(_ input: UnsafeRawBufferPointer) -> Int

    /// The error of input that is over outside compressed data; `nil` where it may be over.
    var faultAtEnd: ContentDecodingError? { get }

    /// Runs the library once, on compressed data. It may change the state.
    /// - Returns: Whether only more input helps.
    func decode(
        _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer, _ step: inout CodingStep
    ) -> Bool

    /// Gives the library's memory back.
    func close()
}

/// The state of a decoder.
enum CodingState {
    /// Before the first byte of compressed data, or after the last.
    case outside
    /// Within compressed data.
    case inside
    /// The input has ended where it may.
    case finished
    /// An error was found; it is thrown again by every call.
    case failed(ContentDecodingError)
}

extension CodingDecoder {
    /// Decodes as much of the input as fits into the output.
    ///
    /// Call again with what was not consumed until the step is finished; `endOfInput` says that nothing comes after this
    /// input and stays true once said. What was decoded before an error is handed out first: the error is thrown by the
    /// call that has nothing else to give. With an empty output nothing happens.
    func step(
        _ input: UnsafeRawBufferPointer, endOfInput: Bool, into output: UnsafeMutableRawBufferPointer
    ) throws(ContentDecodingError) -> CodingStep {
        var step = CodingStep()
        while unsafe !output.isEmpty {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: input[step.consumed...])
            switch state {
            case .failed(let error):
                // Bytes already written in this call come first.
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
                    if let faultAtEnd { fail(faultAtEnd) } else { state = .finished }
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

    var faultAtEnd: ContentDecodingError? { nil }

    func fail(_ error: ContentDecodingError) {
        state = .failed(error)
        close()
    }
}

/// What one call of a decoder did.
struct CodingStep {
    /// Bytes taken from the input.
    var consumed = 0
    /// Bytes written to the output.
    var produced = 0
    /// Whether the input has ended and everything was written.
    var isFinished = false
}

extension ContentCoding {
    /// A decoder for one body in this coding.
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
