extension MarkupMachine {
    /// Start tags, empty-element tags and end tags (§3.1).
    mutating func takeTag(_ code: UInt32) throws(XMLError) {
        switch state {
        case .startName:
            if XMLCharacter.isSpace(code) || code == 0x2F || code == 0x3E {
                tagName = name
                attributes.removeAll(keepingCapacity: true)
                try takeTagPart(code)
            } else {
                try appendName(code, "the name of an element")
            }
        case .inTag:
            if XMLCharacter.isSpace(code) || code == 0x2F || code == 0x3E { return try takeTagPart(code) }
            guard attributes.count < limits.attributeCount else {
                throw fault(
                    .limitExceeded, "an element has more than \(limits.attributeCount) attributes")
            }
            try beginName(code, "the name of an attribute")
            state = .attributeName
        case .attributeName where XMLCharacter.isName(code):
            try appendName(code, "the name of an attribute")
        case .attributeName, .behindAttributeName:
            if code == 0x3D {
                state = .beforeValue
            } else if XMLCharacter.isSpace(code) {
                state = .behindAttributeName
            } else {
                throw fault(.malformedMarkup, "an attribute has no value")
            }
        case .beforeValue:
            if XMLCharacter.isSpace(code) { return }
            guard code == 0x22 || code == 0x27 else {
                throw fault(.malformedMarkup, "the value of an attribute is not in quotes")
            }
            quote = code
            attributeName = name
            token.removeAll(keepingCapacity: true)
            state = .value
        case .value:
            try takeValue(code)
        case .behindValue:
            guard XMLCharacter.isSpace(code) || code == 0x2F || code == 0x3E else {
                throw fault(.malformedMarkup, "there is no space between two attributes")
            }
            try takeTagPart(code)
        case .emptyEnd:
            guard code == 0x3E else { throw fault(.malformedMarkup, "a / within a tag") }
            try openElement()
            try closeElement(tagName)
        case .endName:
            if name.isEmpty { return try beginName(code, "the name of an element") }
            if XMLCharacter.isSpace(code) {
                state = .behindEndName
            } else if code == 0x3E {
                try closeElement(name)
            } else {
                try appendName(code, "the name of an element")
            }
        default:
            if XMLCharacter.isSpace(code) { return }
            guard code == 0x3E else {
                throw fault(.malformedMarkup, "\(XMLCharacter.shown(code)) in an end tag")
            }
            try closeElement(name)
        }
    }

    /// Space or the end of a tag.
    private mutating func takeTagPart(_ code: UInt32) throws(XMLError) {
        if code == 0x2F {
            state = .emptyEnd
        } else if code == 0x3E {
            try openElement()
        } else {
            state = .inTag
        }
    }

    private mutating func takeValue(_ code: UInt32) throws(XMLError) {
        switch code {
        case quote:
            attributes.append(
                RawAttribute(
                    name: attributeName, value: String(decoding: token, as: UTF8.self), position: position))
            state = .behindValue
        case 0x3C:
            throw fault(.unescapedCharacter, "a < in the value of an attribute")
        case 0x26:
            beginReference(inValue: true)
        case 0x09, 0x0A, 0x0D:
            try appendToken(0x20)
        default:
            try appendToken(code)
        }
    }

    private mutating func openElement() throws(XMLError) {
        guard scopes.depth > 0 || !hasRoot else {
            throw fault(.contentOutsideRoot, "a second root element")
        }
        guard scopes.depth < limits.depth else {
            throw fault(.limitExceeded, "elements nest more than \(limits.depth) deep")
        }
        let start = try scopes.open(tagName, attributes, at: position)
        hasRoot = true
        emit(.start(start))
        state = .content
        brackets = 0
    }

    private mutating func closeElement(_ written: [UInt8]) throws(XMLError) {
        emit(.end(try scopes.close(written, at: position)))
        state = .content
        brackets = 0
    }
}
