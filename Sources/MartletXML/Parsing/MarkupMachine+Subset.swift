extension MarkupMachine {
    /// The internal subset (§2.8): passed over, and refused where passing over would change what the document means.
    mutating func takeSubset(_ code: UInt32) throws(XMLError) {
        try checkDoctypeSize()
        switch state {
        case .subset:
            switch code {
            case 0x3C: state = .subsetMarkup
            case 0x5D:
                isInSubset = false
                state = .behindSubset
            default: try requireSpaceInSubset(code)
            }
        case .subsetMarkup:
            switch code {
            case 0x21: state = .subsetBang
            case 0x3F:
                mayBeDeclaration = false
                beginInstruction()
            default: throw fault(.malformedMarkup, "\(XMLCharacter.shown(code)) behind < in a document type")
            }
        case .subsetBang:
            if code == 0x2D {
                state = .commentOpen
            } else {
                try beginName(code, "a declaration")
                state = .subsetKeyword
            }
        case .subsetKeyword:
            if XMLCharacter.isSpace(code) {
                try checkKeyword()
                state = .subsetDeclaration
            } else {
                try appendName(code, "a declaration")
            }
        case .subsetDeclaration:
            try takeDeclaration(code)
        case .subsetLiteral:
            if code == quote { state = .subsetDeclaration }
        default:
            if XMLCharacter.isSpace(code) { return }
            guard code == 0x3E else {
                throw fault(.malformedMarkup, "\(XMLCharacter.shown(code)) behind ] in a document type")
            }
            finishDoctype()
        }
    }

    private func requireSpaceInSubset(_ code: UInt32) throws(XMLError) {
        if XMLCharacter.isSpace(code) { return }
        guard code != 0x25 else { throw parameterEntity }
        throw fault(.malformedMarkup, "\(XMLCharacter.shown(code)) between declarations")
    }

    private var parameterEntity: XMLError {
        fault(.doctypeRefused, "references to parameter entities are not resolved")
    }

    private func checkKeyword() throws(XMLError) {
        switch String(decoding: name, as: UTF8.self) {
        case "ELEMENT", "ATTLIST", "NOTATION": break
        case "ENTITY": throw fault(.doctypeRefused, "entities may not be declared")
        case let other: throw fault(.malformedMarkup, "a declaration of \(other)")
        }
    }

    private mutating func takeDeclaration(_ code: UInt32) throws(XMLError) {
        switch code {
        case 0x3E: state = .subset
        case 0x22, 0x27:
            // Quotes have identifiers in a notation, and default values in a list of attributes.
            guard name.first == UInt8(ascii: "N") else {
                guard name.first == UInt8(ascii: "A") else {
                    throw fault(.malformedMarkup, "a quote in the declaration of an element")
                }
                throw fault(.doctypeRefused, "attributes with default values may not be declared")
            }
            quote = code
            state = .subsetLiteral
        case 0x25: throw parameterEntity
        case 0x3C, 0x5B, 0x5D, 0x26:
            throw fault(.malformedMarkup, "\(XMLCharacter.shown(code)) in a declaration")
        default: break
        }
    }
}
