/// Characters to events: the grammar of XML 1.0 (fifth edition), one character after the other.
///
/// It looks neither ahead nor back, so that what comes of a document does not depend on the pieces it comes in, and the time
/// it takes grows with the document's length.
struct MarkupMachine {
    /// What the next character belongs to.
    enum State: UInt8 {
        case content, markup, bang
        case startName, inTag, attributeName, behindAttributeName, beforeValue, value, behindValue, emptyEnd
        case endName, behindEndName
        case reference, entityName, characterReference, decimalReference, hexReference
        case commentOpen, comment, commentDash, commentEnd
        case sectionOpen, section
        case target, targetEnd, beforeData, data, dataEnd
        case doctypeOpen, beforeDoctypeName, doctypeName, behindDoctypeName, identifierKind
        case beforePublicID, publicID, behindPublicID, beforeSystemID, systemID, behindIdentifiers
        case subset, subsetMarkup, subsetBang, subsetKeyword, subsetDeclaration, subsetLiteral, behindSubset
    }

    /// Text is handed out when it has come to this many bytes.
    static let textPieceByteCount = 64 * 1024

    let limits: XMLLimits
    let doctypeRule: XMLDoctypeRule
    var state = State.content
    /// Where the character at hand begins.
    var position = XMLPosition()
    /// Events that have not been fetched.
    var events: [XMLEvent] = []
    /// The open elements and the namespaces in force.
    var scopes = ElementScopes()
    /// Character data that has not been handed out.
    var text: [UInt8] = []
    /// How many `]` stand directly before; two are enough to know.
    var brackets = 0
    /// The name in the making: of a tag, an attribute, an entity, an instruction.
    var name: [UInt8] = []
    /// The value in the making: of an attribute, a comment, an instruction, an identifier.
    var token: [UInt8] = []
    /// The element in the making.
    var tagName: [UInt8] = []
    /// The name of the attribute whose value is read.
    var attributeName: [UInt8] = []
    /// The element's attributes so far, as they are written.
    var attributes: [RawAttribute] = []
    /// The quote that ends the value at hand.
    var quote: UInt32 = 0
    /// Where a reference goes.
    var isReferenceInValue = false
    /// The number of a character reference so far; nil before its first digit.
    var referenceNumber: UInt32?
    /// How far a fixed word has been matched.
    var matched = 0
    /// Whether a character has come.
    var hasBegun = false
    /// Whether the instruction at hand begins the document.
    var mayBeDeclaration = false
    /// Whether the root element has begun.
    var hasRoot = false
    /// The document type in the making, or made.
    var doctype: XMLDoctype?
    /// Where it began.
    var doctypeOffset = 0
    /// Whether the markup at hand is in the internal subset.
    var isInSubset = false

    /// A machine at the beginning of a document.
    init(limits: XMLLimits, doctypeRule: XMLDoctypeRule) {
        self.limits = limits.sound
        self.doctypeRule = doctypeRule
    }

    /// Takes a character.
    mutating func take(_ code: UInt32, at place: XMLPosition) throws(XMLError) {
        position = place
        switch state {
        case .content: try takeContent(code)
        case .startName, .inTag, .attributeName, .behindAttributeName, .beforeValue, .value, .behindValue,
            .emptyEnd, .endName, .behindEndName:
            try takeTag(code)
        case .reference, .entityName, .characterReference, .decimalReference, .hexReference:
            try takeReference(code)
        case .markup, .bang, .commentOpen, .comment, .commentDash, .commentEnd, .sectionOpen, .section,
            .target, .targetEnd, .beforeData, .data, .dataEnd:
            try takeMarkup(code)
        case .doctypeOpen, .beforeDoctypeName, .doctypeName, .behindDoctypeName, .identifierKind,
            .beforePublicID, .publicID, .behindPublicID, .beforeSystemID, .systemID, .behindIdentifiers:
            try takeDoctype(code)
        case .subset, .subsetMarkup, .subsetBang, .subsetKeyword, .subsetDeclaration, .subsetLiteral,
            .behindSubset:
            try takeSubset(code)
        }
        hasBegun = true
    }

    /// Takes the end of the document.
    mutating func end(at place: XMLPosition) throws(XMLError) {
        position = place
        guard state == .content else { throw fault(.unexpectedEnd, "the document ends within markup") }
        if let open = scopes.innermost {
            throw fault(.unexpectedEnd, "the document ends within the element \(open)")
        }
        guard hasRoot else { throw fault(.unexpectedEnd, "the document has no element") }
    }

    /// How many plain bytes may be added at once to ``text`` or ``token``; 0 where each has to be looked at.
    var runRoom: Int {
        switch state {
        case .content:
            guard brackets == 0, scopes.depth > 0 else { return 0 }
            return MarkupMachine.textPieceByteCount - text.count
        case .section: return brackets == 0 ? MarkupMachine.textPieceByteCount - text.count : 0
        case .value, .comment, .data: return limits.valueByteCount - token.count
        default: return 0
        }
    }

    /// Whether plain bytes go to ``text``; else they go to ``token``.
    var isInText: Bool { state == .content || state == .section }

    /// Hands text out when a piece is full.
    mutating func cutText() {
        if text.count >= MarkupMachine.textPieceByteCount { flushText() }
    }

    /// An error where the machine is.
    func fault(_ code: XMLError.Code, _ message: String) -> XMLError {
        XMLError(code, at: position, message)
    }

    // MARK: - What its parts share

    mutating func emit(_ event: XMLEvent) {
        flushText()
        events.append(event)
    }

    mutating func flushText() {
        guard !text.isEmpty else { return }
        events.append(.text(String(decoding: text, as: UTF8.self)))
        text.removeAll(keepingCapacity: true)
    }

    mutating func appendText(_ code: UInt32) {
        // Before rather than behind, so that a piece ends with a whole character and within its size.
        if text.count > MarkupMachine.textPieceByteCount - 4 { flushText() }
        XMLCharacter.append(code, to: &text)
    }

    mutating func appendToken(_ code: UInt32) throws(XMLError) {
        guard token.count < limits.valueByteCount else {
            throw fault(.limitExceeded, "a value has more than \(limits.valueByteCount) bytes")
        }
        XMLCharacter.append(code, to: &token)
    }

    mutating func beginName(_ code: UInt32, _ what: String) throws(XMLError) {
        name.removeAll(keepingCapacity: true)
        guard XMLCharacter.isNameStart(code) else {
            throw fault(.invalidName, "\(what) cannot begin with \(XMLCharacter.shown(code))")
        }
        XMLCharacter.append(code, to: &name)
    }

    mutating func appendName(_ code: UInt32, _ what: String) throws(XMLError) {
        guard XMLCharacter.isName(code) else {
            throw fault(.invalidName, "\(XMLCharacter.shown(code)) may not stand in \(what)")
        }
        guard name.count < limits.nameByteCount else {
            throw fault(.limitExceeded, "a name has more than \(limits.nameByteCount) bytes")
        }
        XMLCharacter.append(code, to: &name)
    }

    /// Takes a character of a fixed word; true when it is complete.
    mutating func match(_ code: UInt32, _ word: [UInt8], _ what: String) throws(XMLError) -> Bool {
        guard matched < word.count, code == UInt32(word[matched]) else {
            throw fault(.malformedMarkup, "\(XMLCharacter.shown(code)) in \(what)")
        }
        matched += 1
        return matched == word.count
    }
}
