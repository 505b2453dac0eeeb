/// Converts the callbacks of expat to events, and checks the limits.
struct EventBuilder {
    private static let textPieceByteCount = 64 * 1024

    let limits: XMLLimits
    let doctypePolicy: XMLDoctypePolicy
    /// The position of the token that is being reported.
    var position = XMLPosition()
    /// The position and the end of the last event outside of the root element.
    private(set) var lastStart: XMLPosition
    private(set) var lastEnd: Int

    private var events: [(event: XMLEvent, position: XMLPosition)] = []
    private var fetchedCount = 0
    /// Text that is not an event yet, as UTF-8, and the position where it begins.
    private var text: [UInt8] = []
    private var textPosition = XMLPosition()
    private var openNames: [XMLName] = []
    /// The declarations of the element that starts next.
    private var namespaces: [XMLNamespace] = []
    private var doctype: Doctype = .none
    /// All names of the document by their bytes. Swift strings with different bytes can be equal; XML names cannot.
    private var names: [[UInt8]: XMLName] = [:]
    private var vocabularyByteCount = 0

    private enum Doctype { case none, open(XMLDoctype), complete }

    /// Creates a builder.
    /// - Parameter start: The length of the byte order mark.
    init(limits: XMLLimits, doctypePolicy: XMLDoctypePolicy, start: Int) {
        (self.limits, self.doctypePolicy) = (limits, doctypePolicy)
        lastStart = XMLPosition(byteOffset: start)
        lastEnd = start
    }

    var isOutsideRoot: Bool { openNames.isEmpty }

    var openName: XMLName? { openNames.last }

    /// The next event and the position where it begins; `nil` if no event is complete.
    mutating func next() -> (event: XMLEvent, position: XMLPosition)? {
        guard fetchedCount < events.count else { return nil }
        let event = events[fetchedCount]
        fetchedCount += 1
        if fetchedCount == events.count {
            events.removeAll(keepingCapacity: true)
            fetchedCount = 0
        }
        return event
    }

    // MARK: - Elements

    /// A name as expat writes it: the namespace, the local name and the prefix, with U+0001 between them.
    mutating func name(_ written: [UInt8]) throws(XMLError) -> XMLName {
        if let name = names[written] { return name }
        let parts = written.split(separator: ExpatParser.separator, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
        let name =
            parts.count == 1
            ? XMLName(parts[0]) : XMLName(parts[1], namespace: parts[0], prefix: parts.count > 2 ? parts[2] : nil)
        try check("a name has", name.qualified.utf8.count, limits.nameByteCount, "bytes")
        try remember(written, as: name)
        return name
    }

    private mutating func remember(_ written: [UInt8], as name: XMLName) throws(XMLError) {
        vocabularyByteCount += written.count + 64
        try check("all names together have", vocabularyByteCount, limits.vocabularyByteCount, "bytes")
        names[written] = name
    }

    func value(_ text: String) throws(XMLError) -> String {
        try check("a value has", text.utf8.count, limits.valueByteCount, "bytes")
        return text
    }

    mutating func declareNamespace(_ name: String, prefix: String?) throws(XMLError) {
        // Expat writes the namespace before each name in it, so the same length is read again for each of them.
        try check("a namespace has", name.utf8.count, limits.nameByteCount, "bytes")
        namespaces.append(XMLNamespace(try value(name), prefix: prefix))
        guard let prefix else { return }
        try check("a name has", "xmlns:".utf8.count + prefix.utf8.count, limits.nameByteCount, "bytes")
        // Expat stores each prefix for the rest of the document. The colon distinguishes it from names.
        let written = Array("\(prefix):".utf8)
        if names[written] == nil { try remember(written, as: XMLName(prefix)) }
    }

    mutating func start(_ name: XMLName, _ attributes: [XMLAttribute]) throws(XMLError) {
        try check("elements nest", openNames.count + 1, limits.depth, "deep")
        try check("an element has", attributes.count + namespaces.count, limits.attributeCount, "attributes")
        append(.start(XMLElementStart(name, attributes: attributes, namespaces: namespaces)))
        namespaces.removeAll(keepingCapacity: true)
        openNames.append(name)
    }

    /// Ends the innermost element.
    /// - Parameter end: The offset of the end of its tag.
    mutating func end(_ end: Int) {
        guard let name = openNames.popLast() else { return }
        append(.end(name), end: end)
    }

    // MARK: - Text, comments, instructions

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if text.isEmpty { textPosition = position }
        unsafe text.append(contentsOf: bytes)
        while text.count > EventBuilder.textPieceByteCount {
            var count = EventBuilder.textPieceByteCount
            // A piece ends with a whole character.
            while text[count] & 0xC0 == 0x80 { count -= 1 }
            events.append((.text(String(decoding: text[..<count], as: UTF8.self)), textPosition))
            text.removeFirst(count)
            textPosition = position
        }
    }

    mutating func append(comment text: String, end: Int) throws(XMLError) {
        try check("a comment has", text.utf8.count, limits.valueByteCount, "bytes")
        append(.comment(text), end: end)
    }

    mutating func append(instruction target: String, _ data: String, end: Int) throws(XMLError) {
        try check("a name has", target.utf8.count, limits.nameByteCount, "bytes")
        try check("an instruction has", data.utf8.count, limits.valueByteCount, "bytes")
        append(.instruction(target: target, data: data), end: end)
    }

    mutating func append(_ declaration: XMLDeclaration, end: Int) throws(XMLError) {
        guard declaration.version.wholeMatch(of: /1\.[0-9]+/) != nil else {
            throw makeError(.malformedDeclaration, "the version \(declaration.version.prefix(100)) is not supported")
        }
        append(.declaration(declaration), end: end)
    }

    // MARK: - The document type

    mutating func start(_ doctype: XMLDoctype) throws(XMLError) {
        guard doctypePolicy != .reject else { throw makeError(.doctypeRejected, "document types are not accepted") }
        guard case .none = self.doctype else {
            throw makeError(.malformedMarkup, "a document has only one document type")
        }
        try check("a name has", doctype.name.utf8.count, limits.nameByteCount, "bytes")
        self.doctype = .open(doctype)
    }

    mutating func endDoctype(_ end: Int) throws(XMLError) {
        guard case .open(let doctype) = doctype else { return }
        try check("the document type has", end - lastEnd, limits.valueByteCount, "bytes")
        self.doctype = .complete
        append(.doctype(doctype), end: end)
    }

    /// Adds an event, except for comments and instructions within a document type.
    private mutating func append(_ event: XMLEvent, end: Int? = nil) {
        if case .open = doctype { return }
        if !text.isEmpty {
            events.append((.text(String(decoding: text, as: UTF8.self)), textPosition))
            text.removeAll(keepingCapacity: true)
        }
        events.append((event, position))
        if let end { (lastStart, lastEnd) = (position, end) }
    }

    private func check(_ subject: String, _ count: Int, _ limit: Int, _ unit: String) throws(XMLError) {
        guard count <= limit else { throw makeError(.limitExceeded, "\(subject) more than \(limit) \(unit)") }
    }

    func makeError(_ code: XMLError.Code, _ message: String) -> XMLError { XMLError(code, at: position, message) }
}
