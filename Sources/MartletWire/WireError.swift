/// The reason why bytes are not a valid message, or why a message cannot be written.
package struct WireError: Error, Equatable, Sendable, CustomStringConvertible {
    package let code: WireErrorCode
    /// The position of the error: in a received message, the offset from the first byte of its head; in a message of
    /// this side, the byte index in the invalid string.
    package let offset: Int

    package init(_ code: WireErrorCode, at offset: Int) { (self.code, self.offset) = (code, offset) }

    /// Whether the error is in a message of this side, of which nothing was sent.
    package var isLocalError: Bool {
        switch code {
        case .invalidMethod, .invalidTarget, .invalidFieldName, .invalidFieldValue, .invalidHost, .invalidStatus,
            .invalidReason, .conflictingFraming, .repeatedField, .forbiddenTrailer, .encodingOutOfOrder, .illegalEvent:
            true
        default: false
        }
    }

    /// Whether the error is only that the stream ended too early.
    package var isEndOfStream: Bool {
        switch code {
        case .emptyResponse, .truncated: true
        default: false
        }
    }

    /// The error and its position, as text.
    package var description: String {
        switch code {
        case .emptyResponse, .truncated: code.reason
        case _ where isLocalError: "\(code.reason) (at index \(offset)); nothing was written"
        default: "\(code.reason) (at byte \(offset) of the message)"
        }
    }
}

/// The cause of a ``WireError``.
package enum WireErrorCode: Equatable, Sendable {
    // MARK: The stream ended

    /// The stream ended before the first byte of the response; interim responses may have arrived.
    case emptyResponse
    case truncated(Truncation)

    // MARK: Start line

    /// The first line is not `HTTP/x.y SP 3DIGIT [SP reason]` (RFC 9112 §4).
    case invalidStatusLine
    /// The first line is not `method SP target SP HTTP/x.y` (RFC 9112 §3).
    case invalidRequestLine
    /// The start line names a version of HTTP other than 1.x.
    case unsupportedVersion
    /// The status is not three digits from 100 to 999 (RFC 9110 §15).
    case invalidStatusCode

    // MARK: Lines and fields

    /// A CR that is not followed by LF (RFC 9112 §2.2).
    case bareCarriageReturn
    /// An LF that is not preceded by CR where that is not tolerated (RFC 9112 §2.2).
    case bareLineFeed
    case missingColon
    case emptyFieldName
    /// A field name followed by white space before its colon (RFC 9112 §5.1).
    case whitespaceBeforeColon
    case malformedFieldName(UInt8)
    case malformedFieldValue(UInt8)
    /// A folded line without a field line before it.
    case misplacedFold
    /// A folded line in strict mode (RFC 9112 §5.2).
    case obsoleteFold

    // MARK: Limits

    /// The head is longer than ``WireLimits/headByteLimit``.
    case headTooLarge(limit: Int)
    /// A line is longer than ``WireLimits/lineByteLimit``.
    case lineTooLong(limit: Int)
    /// There are more lines than ``WireLimits/lineCountLimit``.
    case tooManyLines(limit: Int)
    /// There are more interim responses than ``WireLimits/informationalResponseLimit``.
    case tooManyInformationalResponses(limit: Int)
    /// The trailer section is longer than ``WireLimits/trailerByteLimit``.
    case trailersTooLarge(limit: Int)
    /// The chunk extensions are together longer than ``WireLimits/chunkExtensionByteLimit``.
    case chunkExtensionsTooLarge(limit: Int)
    /// A chunk size has more digits than ``WireLimits/chunkSizeDigitLimit``.
    case chunkSizeTooLong(limit: Int)

    // MARK: Framing

    /// A Content-Length that is not plain digits (RFC 9112 §6.3).
    case invalidContentLength
    /// Content-Lengths that differ (RFC 9112 §6.3).
    case conflictingContentLengths
    case contentLengthOverflow
    /// Transfer-Encoding together with Content-Length, in strict mode or in a request (RFC 9112 §6.1).
    case ambiguousFraming
    case emptyTransferEncoding
    case unsupportedTransferCoding
    /// `chunked` is followed by another coding (RFC 9112 §6.1).
    case chunkedNotLast
    /// `chunked` is named more than once (RFC 9112 §6.1).
    case repeatedChunked
    /// Transfer-Encoding in an HTTP/1.0 message (RFC 9112 §6.1).
    case transferEncodingInHTTP10
    /// A chunk size that is not plain hexadecimal digits (RFC 9112 §7.1).
    case invalidChunkSize
    case chunkSizeOverflow
    case invalidChunkExtension(UInt8)
    case invalidChunkLineEnd
    case invalidChunkFooter

    // MARK: Sequence

    /// A 101 response although no upgrade was requested (RFC 9110 §15.2.2).
    case unexpectedUpgrade
    case unsolicitedBytes
    /// Calls to a machine in an illegal order: an error in this program.
    case illegalEvent

    // MARK: Messages of this side

    /// A method that is not a token (RFC 9110 §9.1).
    case invalidMethod
    /// A request target that is empty or has bytes other than visible ASCII (RFC 9112 §3.2).
    case invalidTarget
    /// A field name that is not a token (RFC 9110 §5.1).
    case invalidFieldName
    /// A field value with a control byte other than HTAB (RFC 9110 §5.5).
    case invalidFieldValue
    case invalidHost
    case invalidStatus
    case invalidReason
    /// Content-Length and Transfer-Encoding in one head, or one of them twice (RFC 9112 §6.2).
    case conflictingFraming
    /// A repeated field that must be a single line: Host or Cookie.
    case repeatedField
    /// A field that must not be a trailer, such as one for framing or routing (RFC 9110 §6.5.1).
    case forbiddenTrailer
    /// A field before the start line, or after an error.
    case encodingOutOfOrder

    /// The error without its position, as the start of ``WireError/description``.
    fileprivate var reason: String {
        switch self {
        case .emptyResponse: "the peer closed the connection without a byte of a response"
        case .truncated(let truncation): truncation.description
        case .invalidStatusLine: "the first line is not an HTTP/1.1 status line"
        case .invalidRequestLine: "the first line is not an HTTP/1.1 request line"
        case .unsupportedVersion: "the version of HTTP is not 1.0 or 1.1"
        case .invalidStatusCode: "the status is not three digits from 100 to 999"
        case .bareCarriageReturn: "a CR without its LF"
        case .bareLineFeed: "an LF without its CR"
        case .missingColon: "a field line without a colon"
        case .emptyFieldName: "a field without a name"
        case .whitespaceBeforeColon: "white space between a field name and its colon"
        case .malformedFieldName(let byte): "byte \(byte) in a field name"
        case .malformedFieldValue(let byte): "control byte \(byte) in a field value or reason phrase"
        case .misplacedFold: "a folded line with no field before it"
        case .obsoleteFold: "a folded field line, rejected in strict mode"
        case .headTooLarge(let limit): "the head exceeds \(limit) bytes"
        case .lineTooLong(let limit): "a line exceeds \(limit) bytes"
        case .tooManyLines(let limit): "more than \(limit) lines in a head or trailer section"
        case .tooManyInformationalResponses(let limit): "more than \(limit) informational responses"
        case .trailersTooLarge(let limit): "the trailers exceed \(limit) bytes"
        case .chunkExtensionsTooLarge(let limit): "the chunk extensions exceed \(limit) bytes"
        case .chunkSizeTooLong(let limit): "a chunk size of more than \(limit) digits"
        case .invalidContentLength: "a Content-Length that is not plain digits"
        case .conflictingContentLengths: "Content-Lengths that differ"
        case .contentLengthOverflow: "a Content-Length above 9223372036854775807"
        case .ambiguousFraming: "both Transfer-Encoding and Content-Length"
        case .emptyTransferEncoding: "an empty Transfer-Encoding"
        case .unsupportedTransferCoding: "a transfer coding other than chunked"
        case .chunkedNotLast: "a transfer coding after chunked"
        case .repeatedChunked: "the chunked coding applied twice"
        case .transferEncodingInHTTP10: "Transfer-Encoding in an HTTP/1.0 message"
        case .invalidChunkSize: "a chunk size that is not plain hexadecimal digits"
        case .chunkSizeOverflow: "a chunk size above 9223372036854775807"
        case .invalidChunkExtension(let byte): "control byte \(byte) in a chunk extension"
        case .invalidChunkLineEnd: "a chunk-size line that does not end with CRLF"
        case .invalidChunkFooter: "chunk data that is not followed by CRLF"
        case .unexpectedUpgrade: "a 101 response although no upgrade was requested"
        case .unsolicitedBytes: "bytes although no response is due"
        case .illegalEvent: "the exchange was used in an illegal order"
        case .invalidMethod: "the method is not a token"
        case .invalidTarget: "the request target is empty or has a byte that is not visible ASCII"
        case .invalidFieldName: "the field name is not a token"
        case .invalidFieldValue: "the field value has a control byte"
        case .invalidHost: "the host has a byte that is not allowed in a host"
        case .invalidStatus: "the status is not within 100...999"
        case .invalidReason: "the reason phrase has a control byte"
        case .conflictingFraming: "Content-Length and Transfer-Encoding are both given, or one of them twice"
        case .repeatedField: "Host or Cookie is given twice"
        case .forbiddenTrailer: "the field may not be a trailer"
        case .encodingOutOfOrder: "there is no start line to add a field to"
        }
    }
}

/// The part of a message that was cut off when the stream ended too early (RFC 9112 §8).
package enum Truncation: Equatable, Sendable, CustomStringConvertible {
    /// The head was incomplete. Contains the number of received bytes.
    case head(received: Int)
    /// A body was shorter than its Content-Length, in bytes.
    case length(expected: UInt64, received: UInt64)
    /// A chunked body ended before the empty line after its trailers. Contains the received payload in bytes.
    case chunked(received: UInt64)
    /// The connection, and with it the body, did not end with an orderly close. Contains the number of received bytes.
    case untilClose(received: UInt64)

    /// The missing part and the number of bytes before it, as text.
    package var description: String {
        switch self {
        case .head(let received): "the stream ended inside the head, after \(received) bytes of it"
        case .length(let expected, let received): "the stream ended after \(received) of \(expected) bytes of the body"
        case .chunked(let received): "the stream ended inside the chunked body, after \(received) bytes of it"
        case .untilClose(let received):
            "the stream broke off without an orderly close, after \(received) bytes of the body"
        }
    }
}
