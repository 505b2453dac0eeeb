import MartletWire

/// Heads as the public API has them.
enum HeadConversion {
    /// A response of the ecosystem's type. The wire has made sure that nothing in it traps there: the status has three
    /// digits and is at least 100, names are tokens, and there are at most as many fields as the limit says.
    static func response(_ head: ResponseHead) -> HTTPResponse {
        HTTPResponse(
            status: HTTPResponse.Status(code: head.status, reasonPhrase: head.reason),
            headerFields: fields(head.fields))
    }

    /// Fields of the ecosystem's type, in order.
    static func fields(_ block: FieldBlock) -> HTTPFields {
        var fields = HTTPFields()
        fields.reserveCapacity(block.count)
        for index in block.indices {
            guard let name = HTTPField.Name(block.nameString(at: index)) else { continue }
            fields.append(HTTPField(name: name, value: block.valueString(at: index)))
        }
        return fields
    }
}
