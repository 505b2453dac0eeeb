extension MarkupMachine {
    /// What begins with `<` and is no tag: comments (§2.5), CDATA sections (§2.7), instructions (§2.6).
    mutating func takeMarkup(_ code: UInt32) throws(XMLError) {
        switch state {
        case .markup:
            try takeMarkupStart(code)
        case .bang:
            try takeBang(code)
        case .commentOpen, .comment, .commentDash, .commentEnd:
            try takeComment(code)
        case .sectionOpen:
            if try match(code, MarkupMachine.sectionWord, "<![CDATA[") { state = .section }
        case .section:
            takeSection(code)
        default:
            try takeInstruction(code)
        }
    }

    private static let sectionWord = Array("CDATA[".utf8)

    private mutating func takeMarkupStart(_ code: UInt32) throws(XMLError) {
        switch code {
        case 0x21: state = .bang
        case 0x3F: beginInstruction()
        case 0x2F:
            try requireRoot("an end tag")
            name.removeAll(keepingCapacity: true)
            state = .endName
        default:
            guard XMLCharacter.isNameStart(code) else {
                throw fault(.malformedMarkup, "a < that is followed by \(XMLCharacter.shown(code))")
            }
            try beginName(code, "the name of an element")
            state = .startName
        }
    }

    private mutating func takeBang(_ code: UInt32) throws(XMLError) {
        switch code {
        case 0x2D: state = .commentOpen
        case 0x5B:
            try requireRoot("a CDATA section")
            matched = 0
            state = .sectionOpen
        case 0x44: try beginDoctype()
        default: throw fault(.malformedMarkup, "<! that is followed by \(XMLCharacter.shown(code))")
        }
    }

    private mutating func takeComment(_ code: UInt32) throws(XMLError) {
        switch (state, code) {
        case (.commentOpen, 0x2D):
            token.removeAll(keepingCapacity: true)
            state = .comment
        case (.commentOpen, _):
            throw fault(.malformedMarkup, "a comment begins with <!--")
        case (.comment, 0x2D): state = .commentDash
        case (.comment, _): try appendToken(code)
        case (.commentDash, 0x2D): state = .commentEnd
        case (.commentDash, _):
            try appendToken(0x2D)
            try appendToken(code)
            state = .comment
        case (_, 0x3E):
            if isInSubset {
                state = .subset
            } else {
                emit(.comment(String(decoding: token, as: UTF8.self)))
                state = .content
            }
        default:
            throw fault(.malformedMarkup, "-- within a comment")
        }
    }

    /// Character data up to `]]>`; brackets wait for what follows them.
    private mutating func takeSection(_ code: UInt32) {
        if code == 0x5D {
            if brackets == 2 { appendText(code) } else { brackets += 1 }
        } else if code == 0x3E, brackets == 2 {
            brackets = 0
            state = .content
        } else {
            for _ in 0..<brackets { appendText(0x5D) }
            brackets = 0
            appendText(code)
        }
    }

    /// Begins an instruction behind `<?`.
    mutating func beginInstruction() {
        name.removeAll(keepingCapacity: true)
        token.removeAll(keepingCapacity: true)
        state = .target
    }

    private mutating func takeInstruction(_ code: UInt32) throws(XMLError) {
        switch state {
        case .target:
            if name.isEmpty { return try beginName(code, "the target of an instruction") }
            if XMLCharacter.isSpace(code) {
                try checkTarget()
                state = .beforeData
            } else if code == 0x3F {
                try checkTarget()
                state = .targetEnd
            } else {
                try appendName(code, "the target of an instruction")
            }
        case .targetEnd:
            guard code == 0x3E else {
                throw fault(.malformedMarkup, "there is no space behind the target of an instruction")
            }
            try finishInstruction()
        case .beforeData where XMLCharacter.isSpace(code):
            break
        case .beforeData, .data:
            if code == 0x3F {
                state = .dataEnd
            } else {
                try appendToken(code)
                state = .data
            }
        default:
            if code == 0x3E { return try finishInstruction() }
            try appendToken(0x3F)
            if code == 0x3F { return }
            try appendToken(code)
            state = .data
        }
    }

    private func checkTarget() throws(XMLError) {
        guard !name.contains(0x3A) else {
            throw fault(.invalidName, "a colon in the target of an instruction")
        }
        let target = String(decoding: name, as: UTF8.self)
        guard target.lowercased() == "xml" else { return }
        guard target == "xml", mayBeDeclaration else {
            throw fault(
                .malformedDeclaration, "an instruction \(target), which only begins a document, and so only")
        }
    }

    private mutating func finishInstruction() throws(XMLError) {
        let target = String(decoding: name, as: UTF8.self)
        let data = String(decoding: token, as: UTF8.self)
        if target == "xml" {
            guard let declaration = XMLDeclaration(reading: data) else {
                throw fault(.malformedDeclaration, "the XML declaration is malformed")
            }
            emit(.declaration(declaration))
        } else if isInSubset {
            state = .subset
            return
        } else {
            emit(.instruction(target: target, data: data))
        }
        state = .content
    }
}
