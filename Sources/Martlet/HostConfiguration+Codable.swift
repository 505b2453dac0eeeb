import FoundationEssentials
import MartletCoding
import MartletCore
public import MartletHosts

/// The format and its options are encoded, also the strategies of a `JSONEncoder` without closures and `userInfo`.
extension ParameterEncoding: Codable {
    /// Decodes an encoding. Without a format, it is a form.
    /// - Throws: `DecodingError`, for example if the format or a strategy is unknown.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        switch try container.value("format", or: "form") {
        case "form": self = .form
        case "json":
            let own = try container.decodeIfPresent(JSONStrategies.self, forKey: "json")
            self = own.map { .json($0.encoder) } ?? .json
        case "propertyList": self = .propertyList(try container.value("propertyList", or: .xml))
        case let name:
            throw DecodingError.dataCorruptedError(
                forKey: "format", in: container, debugDescription: "\(name) is not a parameter format")
        }
        query = try container.value("query", or: query)
        if let names = try container.decodeIfPresent([String].self, forKey: "methodsInURL") {
            methodsWithParametersInURL = Set(
                try names.map { name in
                    guard let method = HTTPRequest.Method(name) else {
                        throw DecodingError.dataCorruptedError(
                            forKey: "methodsInURL", in: container, debugDescription: "\(name) is not a method")
                    }
                    return method
                })
        }
    }

    /// Encodes the encoding.
    /// - Throws: `EncodingError.invalidValue` for a query serializer and a `JSONEncoder` with closures or `userInfo`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodedKey.self)
        switch format {
        case .form: try container.encode("form", forKey: "format")
        case .json(let json):
            try container.encode("json", forKey: "format")
            guard let json else { break }
            guard let strategies = JSONStrategies(json) else {
                throw encoder.rejection(of: json, "a JSON encoder with closures or userInfo cannot be encoded")
            }
            try container.encode(strategies, forKey: "json")
        case .propertyList(let format):
            try container.encode("propertyList", forKey: "format")
            try container.encode(format, forKey: "propertyList")
        }
        try container.encode(query, forKey: "query")
        try container.encode(methodsWithParametersInURL.map(\.rawValue).sorted(), forKey: "methodsInURL")
    }
}

/// The strategies of a `JSONEncoder`. The defaults are those of ``ParameterEncoding/json``.
private struct JSONStrategies: Codable {
    private enum Bytes: String, Codable { case deferred, base64 }
    private struct Numbers: Codable { var positive, negative, notANumber: String }

    private var dates: JSONForm.Dates? = .iso8601
    private var keys: JSONForm.Keys?
    private var data: Bytes?
    private var numbers: Numbers?
    private var formatting: UInt? = JSONEncoder.OutputFormatting.sortedKeys.rawValue

    /// Creates the strategies of an encoder; `nil` if it holds closures or `userInfo`.
    init?(_ encoder: JSONEncoder) {
        guard encoder.userInfo.isEmpty, let dates = JSONForm.Dates(encoder.dateEncodingStrategy),
            let keys = JSONForm.Keys(encoder.keyEncodingStrategy)
        else { return nil }
        (self.dates, self.keys) = (dates, keys)
        switch encoder.dataEncodingStrategy {
        case .deferredToData: data = .deferred
        case .base64: data = .base64
        default: return nil
        }
        if case .convertToString(let positive, let negative, let notANumber) = encoder
            .nonConformingFloatEncodingStrategy
        {
            numbers = Numbers(positive: positive, negative: negative, notANumber: notANumber)
        }
        formatting = encoder.outputFormatting.rawValue
    }

    var encoder: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = (dates ?? .iso8601).strategy
        encoder.keyEncodingStrategy = (keys ?? .unchanged).strategy
        encoder.dataEncodingStrategy = data == .deferred ? .deferredToData : .base64
        if let numbers {
            encoder.nonConformingFloatEncodingStrategy = .convertToString(
                positiveInfinity: numbers.positive, negativeInfinity: numbers.negative, nan: numbers.notANumber)
        }
        encoder.outputFormatting = formatting.map { .init(rawValue: $0) } ?? .sortedKeys
        return encoder
    }
}

/// The settings of a service are encoded without secrets: the user name and password of its URL,
/// ``HostConfiguration/authentication``, and fields with credentials are omitted.
extension HostConfiguration: Codable {
    private static let settings: [CodedSetting<HostConfiguration>] = [
        .init("headers", \.headers, written: \.withoutSecrets), .init("encoding", \.encoding),
        .init("options", \.options), .init("validatesStatus", optional: \.validatesStatus),
    ]

    /// Decodes the settings. Only `base` is required.
    /// - Throws: `DecodingError`, for example if the URL is invalid.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodedKey.self)
        let text = try container.decode(String.self, forKey: "base")
        do throws(HTTPURL.ParseError) { self.init(base: try HTTPURL(text)) } catch {
            throw DecodingError.dataCorruptedError(
                forKey: "base", in: container, debugDescription: "the base is not a URL: \(error)")
        }
        for setting in HostConfiguration.settings { try setting.decode(&self, container) }
    }

    /// Encodes the settings, without secrets.
    /// - Throws: `EncodingError.invalidValue` if the settings contain a closure or a validator.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodedKey.self)
        try container.encode(base.withoutUserInfo.description, forKey: "base")
        for setting in HostConfiguration.settings { try setting.encode(self, &container) }
    }
}
