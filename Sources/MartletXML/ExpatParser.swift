import CMartletExpat

/// A parser of one document, over expat. It owns expat's parsers and frees them.
///
/// The parser calls back only within ``read(_:)`` and ``finish()``. A callback that finds an error stops the parser.
///
/// A document can take up to three of expat's parsers, one after the other. If it declares another encoding than its
/// parser uses, it is read again from its beginning. After a document type, a new parser reads the rest. So nothing
/// that the document type or its external subset declares can hide an undeclared entity or change a value.
///
/// `@unchecked Sendable`: only one ``XMLEventParser`` refers to it, which cannot be copied and is used by one task at a
/// time.
@safe final class ExpatParser: @unchecked Sendable {
    /// The result of reading a slice.
    enum Outcome {
        case complete
        /// A new parser was created. Reading continues at the byte offset.
        case restarted(at: Int)
        case failed(XMLError)
        case malformed(XML_Error)
    }

    /// The reason for which a callback stopped the parser.
    fileprivate enum Interruption {
        case failure(XMLError)
        case encoding(XMLEncoding)
        case endOfDoctype(XMLPosition)
    }

    /// The byte that expat puts between the parts of a name. No document can contain it.
    static let separator: UInt8 = 1

    /// The parser that reads at the moment. Expat's memory functions have no other context.
    @TaskLocal private static var reading: ExpatParser?

    private let detection: XMLEncoding.Detection
    private(set) var encoding: XMLEncoding
    /// The events, and the state of the document.
    fileprivate(set) var builder: EventBuilder
    private var parser: XML_Parser?
    /// The position of the first byte that the parser received.
    private var origin: XMLPosition
    fileprivate var interruption: Interruption?

    init(_ detection: XMLEncoding.Detection, limits: XMLLimits, doctypePolicy: XMLDoctypePolicy) {
        (self.detection, encoding) = (detection, detection.encoding)
        let markByteCount = !detection.hasMark ? 0 : encoding == .utf8 ? 3 : 2
        builder = EventBuilder(limits: limits, doctypePolicy: doctypePolicy, start: markByteCount)
        // Expat counts the mark as a character of the first line.
        origin = XMLPosition(column: detection.hasMark ? 0 : 1)
        openParser()
    }

    deinit { unsafe XML_ParserFree(parser) }

    /// The next event and the position where it begins; `nil` if no event is complete.
    func nextEvent() -> (event: XMLEvent, position: XMLPosition)? { builder.next() }

    /// The position of the token that is read, or of the error.
    var position: XMLPosition {
        let line = unsafe Int(XML_GetCurrentLineNumber(parser))
        let column = unsafe Int(XML_GetCurrentColumnNumber(parser))
        // The index is -1 before the first byte.
        let index = unsafe max(0, Int(XML_GetCurrentByteIndex(parser)))
        return XMLPosition(
            line: origin.line + max(1, line) - 1, column: (line > 1 ? 1 : origin.column) + column,
            byteOffset: origin.byteOffset + index)
    }

    /// The offset of the first byte that is not part of a complete token.
    var tokenOffset: Int { max(builder.lastEnd, position.byteOffset) }

    /// The offset of the first byte after the last event. Within the root element, text counts as an event.
    var pendingOffset: Int { builder.isOutsideRoot ? builder.lastEnd : tokenOffset }

    /// The offset of the first byte that the position of an error may depend on.
    var neededOffset: Int { builder.isOutsideRoot ? builder.lastStart.byteOffset : tokenOffset }

    fileprivate var tokenEnd: Int { unsafe position.byteOffset + Int(XML_GetCurrentByteCount(parser)) }

    func read(_ bytes: Span<UInt8>) -> Outcome {
        outcome(
            unsafe bytes.withUnsafeBytes { buffer in
                ExpatParser.$reading.withValue(self) {
                    unsafe XML_Parse(
                        parser, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(buffer.count), 0)
                }
            })
    }

    func finish() -> Outcome { unsafe outcome(XML_Parse(parser, nil, 0, 1)) }

    private func outcome(_ status: XML_Status) -> Outcome {
        switch interruption {
        case nil: return unsafe status == XML_STATUS_OK ? .complete : .malformed(XML_GetErrorCode(parser))
        case .failure(let error): return .failed(error)
        case .encoding(let declared):
            interruption = nil
            encoding = declared
            openParser()
            return .restarted(at: 0)
        case .endOfDoctype(let end):
            interruption = nil
            // A space is fed first, so that a byte order mark or a declaration is not at the beginning of a document.
            let space = encoding.space
            origin = XMLPosition(line: end.line, column: end.column - 1, byteOffset: end.byteOffset - space.count)
            openParser()
            if case .malformed(let error) = read(space.span) { return .malformed(error) }
            return .restarted(at: end.byteOffset)
        }
    }

    fileprivate func interrupt(_ interruption: Interruption) {
        self.interruption = interruption
        unsafe XML_StopParser(parser, 0)
    }

    /// Whether a callback has stopped the parser that reads at the moment.
    private static var isStopped: Bool { reading?.interruption != nil }

    private func openParser() {
        unsafe XML_ParserFree(parser)
        // After a callback has stopped it, expat still finishes the tag, and copies a namespace for each prefixed
        // attribute. It receives no memory for that, so a namespace that is too long is not copied.
        unsafe parser = martlet_expat_create(
            encoding.rawValue, XML_Char(ExpatParser.separator),
            { size in unsafe ExpatParser.isStopped ? nil : malloc(size) },
            { pointer, size in unsafe ExpatParser.isStopped ? nil : realloc(pointer, size) })
        // If memory is exhausted there is no parser, and each call of expat reports an error.
        guard let parser = unsafe parser else { return }
        unsafe martlet_expat_disable_reparse_deferral(parser)
        // A second barrier: no entity can be declared anyway. Expat counts the result of `&lt;` as one byte.
        _ = unsafe XML_SetBillionLaughsAttackProtectionMaximumAmplification(parser, 2)
        _ = unsafe XML_SetBillionLaughsAttackProtectionActivationThreshold(parser, 64 << 10)
        _ = unsafe XML_SetParamEntityParsing(parser, XML_PARAM_ENTITY_PARSING_NEVER)
        unsafe XML_SetReturnNSTriplet(parser, 1)
        unsafe XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        unsafe setContentHandlers(parser)
        unsafe setPrologHandlers(parser)
    }

    private func setContentHandlers(_ parser: XML_Parser) {
        unsafe XML_SetElementHandler(
            parser, { data, name, attributes in unsafe call(data) { unsafe try $0.start(name, attributes) } },
            { data, _ in unsafe call(data) { $0.builder.end($0.tokenEnd) } })
        unsafe XML_SetStartNamespaceDeclHandler(parser) { data, prefix, name in
            unsafe call(data) { unsafe try $0.builder.declareNamespace(string(name) ?? "", prefix: string(prefix)) }
        }
        unsafe XML_SetCharacterDataHandler(parser) { data, bytes, count in
            unsafe call(data) { unsafe $0.builder.append(UnsafeRawBufferPointer(start: bytes, count: Int(count))) }
        }
        unsafe XML_SetCommentHandler(parser) { data, text in
            unsafe call(data) { unsafe try $0.builder.append(comment: string(text) ?? "", end: $0.tokenEnd) }
        }
        unsafe XML_SetProcessingInstructionHandler(parser) { data, target, text in
            unsafe call(data) {
                unsafe try $0.builder.append(instruction: string(target) ?? "", string(text) ?? "", end: $0.tokenEnd)
            }
        }
    }

    private func setPrologHandlers(_ parser: XML_Parser) {
        unsafe XML_SetXmlDeclHandler(parser) { data, version, encoding, standalone in
            let isStandalone = standalone < 0 ? nil : standalone == 1
            unsafe call(data) {
                unsafe try $0.declare(
                    XMLDeclaration(
                        version: string(version) ?? "", encoding: string(encoding), isStandalone: isStandalone))
            }
        }
        unsafe XML_SetDoctypeDeclHandler(
            parser,
            { data, name, systemID, publicID, _ in
                unsafe call(data) {
                    unsafe try $0.startDoctype(
                        XMLDoctype(name: string(name) ?? "", publicID: string(publicID), systemID: string(systemID)))
                }
            }, { data in unsafe call(data) { try $0.endDoctype() } })
        unsafe XML_SetEntityDeclHandler(parser) { data, _, _, _, _, _, _, _, _ in
            unsafe call(data) { throw $0.builder.makeError(.doctypeRejected, "entities may not be declared") }
        }
        unsafe XML_SetAttlistDeclHandler(parser) { data, _, _, _, value, _ in
            guard unsafe value != nil else { return }
            unsafe call(data) {
                throw $0.builder.makeError(.doctypeRejected, "attributes may not be declared with default values")
            }
        }
    }

    fileprivate func startDoctype(_ doctype: XMLDoctype) throws(XMLError) {
        try builder.start(doctype)
        // Expat skips references to parameter entities, and reports them to the default handler only.
        unsafe XML_SetDefaultHandlerExpand(parser) { data, bytes, count in
            guard count > 0, unsafe bytes?.pointee == CChar(bitPattern: UInt8(ascii: "%")) else { return }
            unsafe call(data) {
                throw $0.builder.makeError(.doctypeRejected, "references to parameter entities are not resolved")
            }
        }
    }

    fileprivate func start(_ name: UnsafePointer<XML_Char>?, _ pairs: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?)
        throws(XMLError)
    {
        var attributes: [XMLAttribute] = []
        if var pair = unsafe pairs {
            while let name = unsafe pair[0], let value = unsafe pair[1] {
                let value = unsafe try builder.value(String(cString: value))
                attributes.append(XMLAttribute(unsafe try builder.name(bytes(name)), value))
                unsafe pair += 2
            }
        }
        guard let name = unsafe name else { return }
        unsafe try builder.start(builder.name(bytes(name)), attributes)
    }

    fileprivate func declare(_ declaration: XMLDeclaration) throws(XMLError) {
        let declared = try detection.encoding(declared: declaration.encoding, at: position)
        if declared != encoding {
            interrupt(.encoding(declared))
        } else {
            try builder.append(declaration, end: tokenEnd)
        }
    }

    fileprivate func endDoctype() throws(XMLError) {
        try builder.endDoctype(tokenEnd)
        var end = position
        end.column += 1
        end.byteOffset = tokenEnd
        interrupt(.endOfDoctype(end))
    }
}

private func string(_ pointer: UnsafePointer<XML_Char>?) -> String? {
    unsafe pointer.map { unsafe String(cString: $0) }
}

private func bytes(_ pointer: UnsafePointer<XML_Char>) -> [UInt8] {
    let buffer = unsafe UnsafeBufferPointer(start: pointer, count: strlen(pointer))
    return unsafe Array(UnsafeRawBufferPointer(buffer))
}

/// Runs the body of a callback, unless an earlier one stopped the parser. Expat may call back even then.
private func call(_ data: UnsafeMutableRawPointer?, _ body: (ExpatParser) throws -> Void) {
    guard let data = unsafe data else { return }
    let parser = unsafe Unmanaged<ExpatParser>.fromOpaque(data).takeUnretainedValue()
    guard case nil = parser.interruption else { return }
    parser.builder.position = parser.position
    do { try body(parser) } catch {
        parser.interrupt(.failure(error as? XMLError ?? parser.builder.makeError(.malformedMarkup, "\(error)")))
    }
}
