extension MarkupMachine {
    /// Text, and what is beside the root element.
    mutating func takeContent(_ code: UInt32) throws(XMLError) {
        switch code {
        case 0x3C:
            brackets = 0
            mayBeDeclaration = !hasBegun
            state = .markup
        case 0x26:
            try requireRoot("a reference")
            beginReference(inValue: false)
        default:
            guard scopes.depth > 0 else {
                guard XMLCharacter.isSpace(code) else {
                    throw fault(
                        .contentOutsideRoot, "\(XMLCharacter.shown(code)) stands beside the root element")
                }
                return
            }
            if code == 0x3E, brackets >= 2 {
                throw fault(.unescapedCharacter, "]]> stands in text")
            }
            brackets = code == 0x5D ? min(2, brackets + 1) : 0
            appendText(code)
        }
    }

    /// - Throws: when no element is open.
    func requireRoot(_ what: String) throws(XMLError) {
        guard scopes.depth > 0 else {
            throw fault(.contentOutsideRoot, "\(what) stands beside the root element")
        }
    }

    mutating func beginReference(inValue: Bool) {
        isReferenceInValue = inValue
        referenceNumber = nil
        state = .reference
    }

    /// What stands between `&` and `;` (§4.1).
    mutating func takeReference(_ code: UInt32) throws(XMLError) {
        switch state {
        case .reference:
            if code == 0x23 {
                state = .characterReference
                return
            }
            guard XMLCharacter.isNameStart(code) else {
                throw fault(
                    .malformedReference,
                    "an & that is followed by \(XMLCharacter.shown(code)) is no reference")
            }
            try beginName(code, "an entity")
            state = .entityName
        case .entityName:
            if code == 0x3B {
                try finishReference(try entity())
                return
            }
            guard XMLCharacter.isName(code) else {
                throw fault(.malformedReference, "a reference is not ended by a semicolon")
            }
            try appendName(code, "an entity")
        case .characterReference where code == 0x78:
            state = .hexReference
        case .characterReference, .decimalReference:
            state = .decimalReference
            try takeDigit(code, radix: 10)
        default:
            try takeDigit(code, radix: 16)
        }
    }

    private mutating func takeDigit(_ code: UInt32, radix: UInt32) throws(XMLError) {
        if code == 0x3B, let number = referenceNumber {
            guard XMLCharacter.isLegal(number) else {
                throw fault(
                    .malformedReference, "\(XMLCharacter.shown(number)) may not stand in a document")
            }
            return try finishReference(number)
        }
        let digit: UInt32
        switch code {
        case 0x30...0x39: digit = code - 0x30
        case 0x61...0x66: digit = code - 0x61 + 10
        case 0x41...0x46: digit = code - 0x41 + 10
        default: digit = 99
        }
        guard digit < radix else {
            throw fault(.malformedReference, "\(XMLCharacter.shown(code)) is no digit of a reference")
        }
        let number = (referenceNumber ?? 0) * radix + digit
        guard number <= 0x10FFFF else {
            throw fault(.malformedReference, "a reference beyond the last character, U+10FFFF")
        }
        referenceNumber = number
    }

    private func entity() throws(XMLError) -> UInt32 {
        switch String(decoding: name, as: UTF8.self) {
        case "amp": return 0x26
        case "lt": return 0x3C
        case "gt": return 0x3E
        case "apos": return 0x27
        case "quot": return 0x22
        case let other: throw fault(.undeclaredEntity, "the entity \(other) is not declared")
        }
    }

    private mutating func finishReference(_ code: UInt32) throws(XMLError) {
        if isReferenceInValue {
            state = .value
            try appendToken(code)
        } else {
            state = .content
            brackets = 0
            appendText(code)
        }
    }
}
