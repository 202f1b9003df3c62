//! The request of a call.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, Method, header};
use lambda_tools_core::Failure;
use reqwest::{Request, Url};
use serde_json::{Map, Value};

use super::{
    encode::{for_cookie, pairs, percent, simple, text_of},
    multipart,
};
use crate::{
    body::MEDIA_TYPE,
    media_type::{essence_of, is_json, usual_in},
    plan::{Answer, BodyPlan, Encoding, ParameterPlan, Place, RequestPlan, Shape},
};

/// Returns the request of an input, which satisfies the tool's schema, without credentials.
pub(super) fn request_of(plan: &RequestPlan, base: &str, input: Value) -> Result<Request, Failure> {
    let Value::Object(mut input) = input else {
        return Err(Failure::new("The input is not an object"));
    };
    let mut path = plan.path.clone();
    let mut asked: Vec<String> = Vec::new();
    let method = Method::from_bytes(plan.method.as_bytes())?;
    let mut request = Request::new(method, Url::parse(base)?);
    for parameter in &plan.parameters {
        let Some(value) = value_of(parameter, &mut input) else {
            continue;
        };
        let (name, encoding) = (parameter.name(), parameter.encoding);
        let text = || simple(&value, encoding, str::to_owned);
        match parameter.place {
            Place::Path => fill(&mut path, parameter, &value)?,
            Place::Query => asked.extend(pairs(name, &value, encoding, parameter.reserved)),
            Place::Header => add_header(&mut request, name, &text())?,
            Place::Cookie => add_cookie(&mut request, name, &for_cookie(&text()))?,
        }
    }
    *request.url_mut() = url_of(base, &path, &asked)?;
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, accepted(&plan.answer)?);
    if let Some(body) = &plan.body
        && let Some((media_type, body)) = body_of(body, input)?
    {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(&media_type)?);
        *request.body_mut() = Some(body.into());
    }
    Ok(request)
}

/// Adds a header, whose value must be on one line.
pub(super) fn add_header(request: &mut Request, name: &str, value: &str) -> Result<(), Failure> {
    let value = HeaderValue::from_str(value)
        .map_err(|_| Failure::new(format!("{name} has characters that no header can have")))?;
    let name = HeaderName::from_bytes(name.as_bytes())?;
    request.headers_mut().insert(name, value);
    Ok(())
}

/// Adds a cookie to those that the request has.
pub(super) fn add_cookie(request: &mut Request, name: &str, value: &str) -> Result<(), Failure> {
    let mut cookies = format!("{name}={value}").into_bytes();
    if let Some(others) = request.headers().get(header::COOKIE) {
        cookies = [others.as_bytes(), b"; ", &cookies].concat();
    }
    let cookies = HeaderValue::from_bytes(&cookies)?;
    request.headers_mut().insert(header::COOKIE, cookies);
    Ok(())
}

/// Returns the media type and the bytes of the body, if there is one.
fn body_of(
    plan: &BodyPlan,
    mut input: Map<String, Value>,
) -> Result<Option<(String, Vec<u8>)>, Failure> {
    if plan.shape == Shape::Fields {
        let named = input.into_iter().map(|(key, value)| {
            let name = plan.names.get(&key).cloned();
            (name.unwrap_or(key), value)
        });
        let mut fields: Map<String, Value> = named.collect();
        // No further field of an open body takes the place of one that is fixed.
        fields.extend(plan.fixed.clone());
        if fields.is_empty() && !plan.required {
            return Ok(None);
        }
        return of_fields(plan, fields).map(Some);
    }
    let mut take = |property: &str| {
        // A parameter may have taken the name.
        let renamed = plan.names.iter().find(|(_, name)| *name == property);
        let key = renamed.map_or(property, |(key, _)| key);
        let fixed = plan.fixed.get(property).cloned();
        fixed.or_else(|| input.remove(key))
    };
    let Some(value) = take("body") else {
        return Ok(None);
    };
    let (mut media_type, body) = whole(plan, value)?;
    if let Some(range) = plan.media_type.strip_suffix("/*") {
        let chosen = take(MEDIA_TYPE).and_then(|it| it.as_str().map(str::to_owned));
        media_type = chosen.unwrap_or_else(|| usual_in(range).to_owned());
    }
    Ok(Some((media_type, body)))
}

/// Takes the value of a parameter out of the input.
fn value_of(parameter: &ParameterPlan, input: &mut Map<String, Value>) -> Option<Value> {
    let fixed = parameter.fixed.clone();
    let value = fixed.or_else(|| input.remove(parameter.key.as_ref()?))?;
    (!value.is_null()).then_some(value)
}

/// Fills a template of a path. No value may change which resource the path names.
fn fill(path: &mut String, parameter: &ParameterPlan, value: &Value) -> Result<(), Failure> {
    let (name, text) = (parameter.name(), simple(value, parameter.encoding, percent));
    if text.is_empty() {
        return Err(Failure::new(format!("{name} must not be empty")));
    }
    *path = path.replace(&format!("{{{name}}}"), &text);
    Ok(())
}

fn url_of(base: &str, path: &str, asked: &[String]) -> Result<Url, Failure> {
    // Some documents tell operations of one path apart by a fragment, which no request has.
    let path = path.split('#').next().unwrap_or_default();
    // A URL parser would resolve these segments, and name another resource.
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(Failure::new("A part of the path must not be `.` or `..`"));
    }
    let mut text = format!("{base}{path}");
    if !asked.is_empty() {
        let separator = if path.contains('?') { '&' } else { '?' };
        text.push(separator);
        text += &asked.join("&");
    }
    let url = Url::parse(&text)?;
    let base = Url::parse(base)?;
    if url.origin() != base.origin() || !url.path().starts_with(base.path().trim_end_matches('/')) {
        return Err(Failure::new("The request would leave the API"));
    }
    Ok(url)
}

fn accepted(answer: &Answer) -> Result<HeaderValue, Failure> {
    Ok(HeaderValue::from_str(match answer {
        Answer::Json(it) | Answer::Text(it) | Answer::Content(it) => it,
        Answer::Redirect | Answer::Any => "*/*",
    })?)
}

/// Returns the media type and the bytes of a body that is one property.
fn whole(plan: &BodyPlan, value: Value) -> Result<(String, Vec<u8>), Failure> {
    let media_type = plan.media_type.clone();
    match (plan.shape, value) {
        (Shape::Text, value) => Ok((media_type, text_of(&value).unwrap_or_default().into_bytes())),
        (Shape::Base64, value) => {
            let text = value.as_str().unwrap_or_default();
            let bytes = STANDARD.decode(text);
            let bytes = bytes.map_err(|_| Failure::new("body is not base64"))?;
            Ok((media_type, bytes))
        }
        (_, Value::Object(fields)) => of_fields(plan, fields),
        (_, Value::String(text)) if !is_json(&essence_of(&media_type)) => {
            Ok((media_type, text.into_bytes()))
        }
        (_, value) => Ok((media_type, serde_json::to_vec(&value)?)),
    }
}

fn of_fields(
    plan: &BodyPlan,
    mut fields: Map<String, Value>,
) -> Result<(String, Vec<u8>), Failure> {
    if let Some(name) = &plan.envelope
        && !(fields.is_empty() && plan.optional_envelope)
    {
        fields = Map::from_iter([(name.clone(), fields.into())]);
    }
    if plan.media_type.starts_with("multipart/") {
        return multipart::body_of(&fields, plan);
    }
    let media_type = plan.media_type.clone();
    if media_type.starts_with("application/x-www-form-urlencoded") {
        let all = fields.iter().flat_map(|(name, value)| {
            let json = value.is_object().then_some(Encoding::Json);
            let encoding = plan.encodings.get(name).copied().or(json);
            pairs(name, value, encoding.unwrap_or_default(), false)
        });
        let form = all.collect::<Vec<_>>().join("&");
        return Ok((media_type, form.into_bytes()));
    }
    Ok((media_type, serde_json::to_vec(&fields)?))
}
