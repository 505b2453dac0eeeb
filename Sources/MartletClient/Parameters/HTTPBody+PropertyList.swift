import FoundationEssentials

extension HTTPBody {
    /// A value as a property list (`application/x-plist`). It is encoded here; if that fails, the call throws the encoder's
    /// error before anything is sent.
    ///
    /// At the top it must be an array or a dictionary, as property lists are.
    public static func propertyList(
        _ value: some Encodable, format: PropertyListFormat = .xml
    ) -> HTTPBody {
        do {
            return try encodingPropertyList(value, format: format)
        } catch {
            return HTTPBody(.failure(error), contentType: nil)
        }
    }

    static func encodingPropertyList(_ value: some Encodable, format: PropertyListFormat) throws -> HTTPBody {
        let encoder = PropertyListEncoder()
        switch format {
        case .xml: encoder.outputFormat = .xml
        case .binary: encoder.outputFormat = .binary
        }
        return HTTPBody(.bytes(Array(try encoder.encode(value))), contentType: "application/x-plist")
    }
}
