/// Reads a document as it comes: bytes in, events out.
///
/// ```swift
/// var parser = XMLEventParser()
/// parser.feed(bytes)
/// while let event = try parser.next() { … }
/// parser.finish()
/// while let event = try parser.next() { … }
/// ```
///
/// It is strict: what is not well-formed by XML 1.0 (fifth edition) and Namespaces in XML 1.0 is an ``XMLError`` with its
/// place, and stays one. The events do not depend on the pieces that the bytes come in, the time is linear in the document,
/// and the memory is bounded by ``XMLLimits`` and by what was fed and not yet read. Of a document type only the name and
/// the identifiers are looked at (``XMLDoctypeRule``); no entity can be declared, and nothing is ever fetched.
public struct XMLEventParser: Sendable {
    private var reader: ScalarReader
    private var machine: MarkupMachine
    private var fetched = 0
    private var isAtEnd = false
    private var failure: XMLError?

    /// A parser at the beginning of a document.
    ///
    /// - Parameters:
    ///   - charset: The encoding that the transport names, such as the `charset` of `Content-Type`; it goes before the
    ///     document's own declaration, and behind a byte order mark (RFC 7303 §3.2).
    ///   - limits: What a document may have at most.
    ///   - doctype: What becomes of a document type; by default it is skipped.
    public init(charset: String? = nil, limits: XMLLimits = .default, doctype: XMLDoctypeRule = .skip) {
        reader = ScalarReader(charset: charset, byteLimit: limits.sound.byteCount)
        machine = MarkupMachine(limits: limits, doctypeRule: doctype)
    }

    /// The encoding of the document; nil until its first four bytes are there.
    public var encoding: XMLEncoding? { reader.encoding }

    /// How far the document was read: the place behind the last character.
    public var position: XMLPosition { reader.position }

    /// Adds bytes of the document; any number, none too.
    public mutating func feed(_ bytes: some Sequence<UInt8>) { reader.feed(bytes) }

    /// Says that the document ends here.
    public mutating func finish() { reader.finish() }

    /// The next event; nil when more bytes are needed, and at the end of a document that is finished.
    ///
    /// - Throws: What is wrong, again and again: behind an error there are no events.
    public mutating func next() throws(XMLError) -> XMLEvent? {
        if fetched < machine.events.count { return fetch() }
        if let failure { throw failure }
        do throws(XMLError) {
            try run()
        } catch {
            failure = error
            // What came before the fault comes first.
            guard machine.events.isEmpty else { return fetch() }
            throw error
        }
        return machine.events.isEmpty ? nil : fetch()
    }

    private mutating func fetch() -> XMLEvent {
        let event = machine.events[fetched]
        fetched += 1
        if fetched == machine.events.count {
            machine.events.removeAll(keepingCapacity: true)
            fetched = 0
        }
        return event
    }

    /// Reads until there is an event, or no byte.
    private mutating func run() throws(XMLError) {
        var place = reader.position
        while machine.events.isEmpty, !isAtEnd {
            let room = machine.runRoom
            if room > 0 {
                if machine.isInText {
                    reader.moveRun(upTo: room, to: &machine.text)
                    machine.cutText()
                } else {
                    reader.moveRun(upTo: room, to: &machine.token)
                }
            }
            guard let code = try reader.next(&place) else {
                guard reader.isFinished else { return }
                try machine.end(at: place)
                isAtEnd = true
                return
            }
            try machine.take(code, at: place)
            if case .declaration(let declaration) = machine.events.first {
                try reader.declare(declaration.encoding, at: place)
            }
        }
    }
}
