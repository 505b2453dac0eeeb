import CMartletExpat

/// Reads a document incrementally: bytes in, events out.
///
/// ```swift
/// var parser = XMLEventParser()
/// parser.feed(bytes)
/// while let event = try parser.next() { … }
/// parser.finish()
/// while let event = try parser.next() { … }
/// ```
///
/// It uses the system's expat, within ``XMLLimits``. A document that is not well-formed by XML 1.0 and Namespaces in
/// XML 1.0 is an ``XMLError`` with its position. Names follow the fourth edition of XML 1.0, as in expat; the rest
/// follows the fifth. The events of a well-formed document do not depend on how its bytes are split, and the time is
/// linear in its length. The memory is bounded by the limits and by the bytes that are fed and not yet read. Only the
/// name and the identifiers of a document type are reported (``XMLDoctypePolicy``). Entities cannot be declared, and
/// nothing is fetched.
///
/// A parser cannot be copied, since it owns expat's parser. Both are freed together.
public struct XMLEventParser: ~Copyable, Sendable {
    /// The minimum size of the slices that expat reads. They grow with an incomplete token.
    private static let sliceByteCount = 4096

    private let charset: String?
    private let limits: XMLLimits
    private let doctypePolicy: XMLDoctypePolicy
    /// Bytes that were not read yet, and earlier bytes that an error message may need.
    private var input: [UInt8] = []
    /// The offset of the first byte of ``input`` in the document.
    private var inputOffset = 0
    /// The number of bytes that were passed to expat.
    private var readCount = 0
    /// The number of bytes that may be read again: expat reads a token from its beginning each time that a part of it
    /// arrives.
    private var rereadBudget = 1 << 20
    private var isFinished = false
    private var isAtEnd = false
    private var expat: ExpatParser?
    /// The error of expat, until the character that it concerns has arrived.
    private var rejection: XML_Error?
    private var failure: XMLError?
    /// The position of the last event, or of the error.
    public private(set) var position = XMLPosition()

    /// Creates a parser for one document.
    /// - Parameters:
    ///   - charset: The encoding from the transport, such as the `charset` of `Content-Type`. It takes precedence over
    ///     the document's own declaration, and a byte order mark over both (RFC 7303 §3.2).
    ///   - limits: The limits of depth, sizes and counts.
    ///   - doctype: The treatment of a document type; by default it is skipped.
    public init(charset: String? = nil, limits: XMLLimits = .default, doctype: XMLDoctypePolicy = .ignore) {
        (self.charset, self.limits, doctypePolicy) = (charset, limits.sound, doctype)
    }

    /// The encoding of the document; `nil` until its first four bytes are read.
    public var encoding: XMLEncoding? { expat?.encoding }

    /// Adds any number of bytes of the document.
    public mutating func feed(_ bytes: some Sequence<UInt8>) { input.append(contentsOf: bytes) }

    /// Marks the end of the document.
    public mutating func finish() { isFinished = true }

    /// The next event; `nil` if more bytes are needed, and at the end of a finished document.
    ///
    /// An event is returned once the last byte of its markup has arrived. If markup arrives in very many pieces, up to
    /// a sixteenth of its length in further bytes may be needed.
    /// - Throws: The error of the document. Later calls throw it again.
    public mutating func next() throws(XMLError) -> XMLEvent? {
        while true {
            if let (event, position) = expat?.nextEvent() {
                self.position = position
                return event
            }
            if let failure {
                position = failure.position
                throw failure
            }
            do throws(XMLError) { guard try advance() else { return nil } } catch { failure = error }
        }
    }

    /// Passes the next slice to expat.
    /// - Returns: Whether there was a slice to pass.
    private mutating func advance() throws(XMLError) -> Bool {
        guard !isAtEnd, let expat = try openParser() else { return false }
        if let rejection {
            let known = input.dropFirst(expat.position.byteOffset - inputOffset).prefix(4)
            guard isFinished || known.count == 4 || known.first.map({ $0 < 0x80 }) == true else { return false }
            throw error(rejection, expat)
        }
        let unread = inputOffset + input.count - readCount
        guard unread > 0 else {
            guard isFinished else { return false }
            isAtEnd = true
            return try handle(expat.finish(), expat)
        }
        // The time stays linear: each new byte pays for reading sixteen bytes again, and slices grow with the token.
        let begun = readCount - expat.tokenOffset
        guard isFinished || begun <= rereadBudget + 16 * unread else { return false }
        // Expat counts in 32 bits.
        let slice = min(max(XMLEventParser.sliceByteCount, begun), 1 << 28)
        let count = try readableCount(min(unread, slice), expat)
        guard count > 0 else { return false }
        rereadBudget += 16 * count - begun
        let start = readCount - inputOffset
        let outcome = expat.read(input.span.extracting(start..<start + count))
        readCount += count
        return try handle(outcome, expat)
    }

    /// The parser, once the encoding is known.
    private mutating func openParser() throws(XMLError) -> ExpatParser? {
        if let expat { return expat }
        guard input.count >= 4 || isFinished else { return nil }
        let detection = try XMLEncoding.Detection(Array(input.prefix(4)), charset: charset)
        let parser = ExpatParser(detection, limits: limits, doctypePolicy: doctypePolicy)
        expat = parser
        return parser
    }

    /// The number of the next bytes that may be passed to expat, up to a maximum.
    private func readableCount(_ count: Int, _ expat: ExpatParser) throws(XMLError) -> Int {
        var place = expat.position
        place.byteOffset = readCount
        guard readCount < limits.byteCount else {
            throw XMLError(.limitExceeded, at: place, "the document has more than \(limits.byteCount) bytes")
        }
        let room = limits.tokenByteCount + 1 - (readCount - expat.pendingOffset)
        guard room > 0 else {
            throw XMLError(
                .limitExceeded, at: expat.position,
                expat.builder.isOutsideRoot
                    ? "more than \(limits.tokenByteCount) bytes without an element"
                    : "a tag or a comment has more than \(limits.tokenByteCount) bytes")
        }
        let start = readCount - inputOffset
        let end = start + min(count, room, limits.byteCount - readCount)
        let isLast = end < start + count || isFinished && end == input.count
        let (readable, isMalformed) = expat.encoding.readable(input[start..<end], isLast: isLast)
        guard readable == 0, isMalformed || isFinished else { return readable }
        throw XMLError(.invalidByteSequence, at: place, "malformed \(expat.encoding.rawValue)")
    }

    private mutating func handle(_ outcome: ExpatParser.Outcome, _ expat: ExpatParser) throws(XMLError) -> Bool {
        switch outcome {
        case .complete: break
        case .restarted(let offset):
            readCount = offset
            isAtEnd = false
        case .failed(let error): throw error
        case .malformed(let code) where isAtEnd: throw error(code, expat)
        case .malformed(let code):
            rejection = code
            return true
        }
        // Many bytes are removed at a time, so that the rest is not moved repeatedly.
        let unneeded = expat.neededOffset - inputOffset
        if unneeded > input.count / 2 {
            input.removeFirst(unneeded)
            inputOffset += unneeded
        }
        return true
    }

    private func error(_ code: XML_Error, _ expat: ExpatParser) -> XMLError {
        // Includes the rest of the last character that was read.
        let bytes = input.prefix(readCount - inputOffset + 4)
        return XMLError(code, in: expat, bytes, from: inputOffset, isAtEnd: isAtEnd)
    }
}
